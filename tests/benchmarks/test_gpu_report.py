"""The GPU report, run at toy size on the CPU, so that it works the first time there is a GPU."""

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import jaxtyping
import pytest
import torch

from benchmarks import gpu_parts, gpu_report
from benchmarks.gpu_parts import GPU_TESTS, TOY
from benchmarks.gpu_report import SHARES, main
from benchmarks.gpu_training import run
from convs2s.model.seq2seq import Seq2Seq
from convs2s.train import loop
from convs2s.train.fast.loss import GpuSummedLoss
from convs2s.train.fast.switch import few_operations
from convs2s.train.loss import SummedLoss
from tests.train.tiny import tiny_training, weights

ROOT = Path(__file__).parent.parent.parent
SLOW = ["updates", "operators", "compiled"]  # test_train_step measures updates in the default suite


@pytest.fixture
def toy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Train as on GPUs, with peaks given and two toy tests: one passes, one fails."""
    content = "def test_one(): pass\ndef test_other(): assert 1 == 2\n"
    (tmp_path / "test_toy.py").write_text(content, encoding="utf-8")
    tests = ("-c", "/dev/null", str(tmp_path / "test_toy.py"))
    monkeypatch.setattr(loop, "summed_loss", of_a_gpu)
    monkeypatch.setattr(gpu_report, "TOY", replace(TOY, tests=tests))
    monkeypatch.setattr(gpu_parts, "product_peaks", lambda _: {"float32": 1e11, "bfloat16": 2e11})


def of_a_gpu(model: Seq2Seq, smoothing: float) -> SummedLoss:
    """Return the loss that GPUs use, which computes the same on the CPU."""
    few_operations(model)
    return GpuSummedLoss(model, smoothing)


def report(folder: Path, parts: list[str]) -> dict[str, Any]:
    """Make a report of these parts; check the page, and return the outcomes."""
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
def test_the_parts_run_on_the_cpu(tmp_path: Path) -> None:
    """Each part must measure something, from the machine to BLEU."""
    found = report(tmp_path, [name for name in SHARES if name not in SLOW])
    rows = {name: outcome["rows"] for name, outcome in found.items()}
    assert {"what": "GPUs", "value": "0"} in rows["machine"]
    assert [row["outcome"] for row in rows["tests"]] == ["passed", "failure"]
    assert rows["tests"][1]["message"] == "assert 1 == 2"
    assert [(row["precision"], row["beam"]) for row in rows["translations"]] == [
        ("bfloat16", 1), ("bfloat16", 5),
    ]  # fmt: skip
    assert all(row["tokens/s"] > 0 for row in rows["translations"])
    steps = [row["step"] for row in rows["training"]]
    assert steps[:3] == ["text, vocabulary", "epoch 1", "training ended: it has run for 1 epoch"]
    assert 0 <= rows["training"][3]["BLEU"] <= 100
    assert rows["processes"][0]["tokens/s"] > 0
    assert rows["processes"][1]["note"] == "skipped: PyTorch sees 0 GPUs"


@pytest.mark.slow
@pytest.mark.usefixtures("toy")
def test_updates_run_on_the_cpu_compiled_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The GPU layers are compiled; torch.compile cannot handle the tests' shape checks."""
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)
    rows = {name: outcome["rows"] for name, outcome in report(tmp_path, SLOW).items()}
    paths = ("plain", "fast", "recorded")
    assert [row["variant"] for row in rows["updates"]] == [
        f"{path} {precision}" for precision in ("bfloat16", "float32") for path in paths
    ]
    assert all(row["share_of_products"] > 0 for row in rows["updates"])
    assert {row["operation"] for row in rows["operators"]} > {"an update by the clock", "aten::mm"}
    assert [row["variant"] for row in rows["compiled"]] == [
        "fast bfloat16", "recorded bfloat16", "compiled bfloat16",
    ]  # fmt: skip
    page = (tmp_path / "out" / "report.md").read_text(encoding="utf-8")
    assert re.search(r"\| fast bfloat16 \| .* \| multi30k-en-de \| 50 \|", page)


@pytest.mark.usefixtures("toy")
def test_a_training_without_time_left_keeps_its_best_weights(tmp_path: Path) -> None:
    """It stops after an update, logs why, and keeps the best epoch's weights; here, the initial ones."""
    training = tiny_training(tmp_path)
    before = weights(training).clone()
    rows: list[dict[str, Any]] = []
    row = run(training, 0.0, rows.append)
    assert (row["step"], rows) == ("training ended: no time left, before its end", [])
    assert training.state.updates == 1
    assert torch.equal(weights(training), before)


def test_all_tests_for_gpus_are_in_the_report() -> None:
    """Tests with this mark run nowhere else."""
    mark = re.compile(r"pytest\.mark\.gpu\b")
    found = {
        str(path.relative_to(ROOT))
        for path in (ROOT / "tests").rglob("test_*.py")
        if path != Path(__file__) and mark.search(path.read_text(encoding="utf-8"))
    }
    assert found == set(GPU_TESTS)
