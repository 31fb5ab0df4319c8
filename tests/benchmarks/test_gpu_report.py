"""The report on a GPU runs at toy size on the CPU, so that it works the first time there is a GPU."""

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from benchmarks import gpu_parts, gpu_report
from benchmarks.gpu_parts import GPU_TESTS, TOY
from benchmarks.gpu_report import SHARES, main

ROOT = Path(__file__).parent.parent.parent
SLOW = {"compiled"}  # a compiler's minute


@pytest.fixture
def toy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the parts still cheaper: peaks are given, and the tests are one that passes and one that fails."""
    content = "def test_one(): pass\ndef test_other(): assert 1 == 2\n"
    (tmp_path / "test_toy.py").write_text(content, encoding="utf-8")
    tests = ("-c", "/dev/null", str(tmp_path / "test_toy.py"))
    monkeypatch.setattr(gpu_report, "TOY", replace(TOY, tests=tests))
    monkeypatch.setattr(gpu_parts, "product_peaks", lambda _: {"float32": 1e11, "bfloat16": 2e11})


def report(folder: Path, parts: list[str]) -> dict[str, Any]:
    """Make the report of these parts; return the parts' outcomes, after a look at the page."""
    main(["--toy", "--seconds", "300", "--out", str(folder / "out"), "--parts", *parts])
    content = json.loads((folder / "out" / "report.json").read_text(encoding="utf-8"))
    page = (folder / "out" / "report.md").read_text(encoding="utf-8")
    found: dict[str, Any] = content["parts"]
    for name in parts:
        log = (folder / "out" / f"{name}.log").read_text(encoding="utf-8")
        assert found[name]["status"] == "done", log
        assert f"## {gpu_report.TITLES[name]}\n\ndone, " in page
    return found


@pytest.mark.usefixtures("toy")
def test_all_parts_run_on_the_cpu(tmp_path: Path) -> None:
    """Each measures something, from the machine to BLEU."""
    found = report(tmp_path, [name for name in SHARES if name not in SLOW])
    rows = {name: outcome["rows"] for name, outcome in found.items()}
    assert {"what": "GPUs", "value": "0"} in rows["machine"]
    assert [row["outcome"] for row in rows["tests"]] == ["passed", "failure"]
    assert rows["tests"][1]["message"] == "assert 1 == 2"
    assert [row["variant"] for row in rows["updates"]] == [
        "plain bfloat16", "fast bfloat16", "plain float32", "fast float32",
    ]  # fmt: skip
    assert all(row["share_of_products"] > 0 for row in rows["updates"])
    assert {row["operation"] for row in rows["operators"]} > {"an update by the clock", "aten::mm"}
    assert [(row["precision"], row["beam"]) for row in rows["translations"]] == [
        ("bfloat16", 1), ("bfloat16", 5), ("float32", 1), ("float32", 5),
    ]  # fmt: skip
    steps = [row["step"] for row in rows["training"]]
    assert steps[:3] == ["text, vocabulary", "epoch 1", "training ended: it has run for 1 epoch"]
    assert 0 <= rows["training"][3]["BLEU"] <= 100
    assert rows["processes"][0]["tokens/s"] > 0
    assert rows["processes"][1]["note"] == "skipped: PyTorch sees 0 GPUs"
    page = (tmp_path / "out" / "report.md").read_text(encoding="utf-8")
    assert re.search(r"\| fast bfloat16 \| .* \| multi30k-en-de \| 50 \|", page)


@pytest.mark.slow
@pytest.mark.usefixtures("toy")
def test_compiled_updates_run_on_the_cpu(tmp_path: Path) -> None:
    """By the layers for GPUs, which have nothing that torch.compile cannot take along."""
    rows = report(tmp_path, ["compiled"])["compiled"]["rows"]
    assert [row["variant"] for row in rows] == ["fast bfloat16", "compiled bfloat16"]


def test_a_training_without_time_left_gives_bleu_all_the_same(tmp_path: Path) -> None:
    """Of the best weights so far, which here are the initial ones."""
    rows: list[dict[str, Any]] = []
    gpu_report.train_to_the_end(None, True, rows.append, 0.0)
    assert rows[1]["step"] == "training ended: no time left, before its end"
    assert 0 <= rows[2]["BLEU"] <= 100


def test_all_tests_for_gpus_are_in_the_report() -> None:
    """A test with this mark runs nowhere else."""
    mark = re.compile(r"pytest\.mark\.gpu\b")
    found = {
        str(path.relative_to(ROOT))
        for path in (ROOT / "tests").rglob("test_*.py")
        if path != Path(__file__) and mark.search(path.read_text(encoding="utf-8"))
    }
    assert found == set(GPU_TESTS)
