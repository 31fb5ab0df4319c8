"""The report of a GPU: all of it runs without one, and it says at once what is missing."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from benchmarks.gpu_report import __main__ as gpu_report
from benchmarks.gpu_report import updates
from benchmarks.harness import Report
from convs2s.train.loss_in_parts import LossInParts
from tests.docs.pages import ROOT
from tests.test_dependencies import declared, follow_imports, normalize

MEASURE_HARDWARE = ["launches", "products", "compiled"]
"""Parts that run on the CPU at toy size: their operations are not those of a pretended GPU."""
ALL = gpu_report.parts(Path())


def print_of(command: list[str], **variables: str) -> str:
    """Run a command with these variables; return what it prints."""
    environment = os.environ | variables
    done = subprocess.run(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    return done.stdout


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_all_parts_run(tmp_path: Path) -> None:
    """Time on a GPU is rare: what the report measures must have run before, to its end."""
    ours = [part.name for part in ALL if part.name not in MEASURE_HARDWARE]
    out = os.path.relpath(tmp_path, ROOT)  # relative, as is the default
    make = ["make", "gpu-report", f"PYTHON={sys.executable}", "TOY=1", f"OUT={out}"]
    run = [sys.executable, "-m", "benchmarks.gpu_report", "--toy", f"--out={out}", "--parts", *ours]
    printed = print_of([*make, f"PARTS={' '.join(MEASURE_HARDWARE)}"])
    pretended = [] if torch.cuda.is_available() else [str(ROOT / "tests/pretended_gpu/startup")]
    printed += print_of(run, PYTHONPATH=":".join([*pretended, str(ROOT)]), PRETENDED_GPUS="1")
    text = (tmp_path / "report.md").read_text(encoding="utf-8")
    titles = [line[3:] for line in text.splitlines() if line.startswith("## ")]
    assert sorted(titles) == sorted(part.title for part in ALL)
    assert text.count("exit status 0, ") == len(ALL)
    assert all(line in printed for line in text.splitlines())
    results = json.loads((tmp_path / "report.json").read_text(encoding="utf-8"))
    assert set(results) == set(titles) - {ALL[0].title}
    for title, part in results.items():
        assert {"cpu", "python", "torch"} <= part["machine"].keys()
        assert part["results"], title
    assert "gpu" in results["Search"]["machine"]
    searches = results["Search"]["results"]
    assert {row["search"] for row in searches} == {"host", "device"}
    assert all(row["same"] == "40 of 40" for row in searches if row["precision"] == "float32")
    for title in ("Updates", "Updates of 48 sentences"):
        differences = [row["difference"] for row in results[title]["results"] if "difference" in row]
        assert len(differences) == 2
        assert max(differences) < 1e-5
    stages = {row.get("stage") for row in results["The default preset, from text to BLEU"]["results"]}
    assert {"download@train", "train@1", "package@1"} <= stages


def test_limits_of_the_parts_fit_into_the_ten_minutes() -> None:
    """Otherwise the last ones would not run, however fast the first ones are."""
    assert sum(part.seconds for part in ALL) <= gpu_report.SECONDS


def test_a_second_run_adds_to_the_report(tmp_path: Path) -> None:
    """A part that was cut off does not cost the others another ten minutes of a GPU."""
    one, other = (
        gpu_report.Part(name, name, ("json.tool", "--help"), 60, toy=("json.tool", "--help"))
        for name in ("one", "other")
    )
    gpu_report.write_report(tmp_path, [one], is_toy=True)
    (tmp_path / "report.json").write_text('{"one": 1}')
    gpu_report.write_report(tmp_path, [other], is_toy=True, is_added=True)
    text = (tmp_path / "report.md").read_text(encoding="utf-8")
    assert [line for line in text.splitlines() if line.startswith("#")] == [
        "# Report of a GPU", "## one", "## other",
    ]  # fmt: skip
    assert json.loads((tmp_path / "report.json").read_text()) == {"one": 1}


def test_a_part_that_is_not_there_is_an_error() -> None:
    """It names those that are."""
    with pytest.raises(ValueError, match=r"expected parts of results, launches, .*, found serch"):
        gpu_report.main(["--toy", "--parts", "serch"])


def test_missing_packages_are_named_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine with a GPU may have other packages, and its minutes are counted."""
    present = gpu_report.is_installed
    monkeypatch.setattr(gpu_report, "is_installed", lambda name: name != "pooch" and present(name))
    with pytest.raises(ValueError, match=r"expected these packages, too: pip install pooch$"):
        gpu_report.main([])


def test_all_packages_that_parts_import_are_looked_for() -> None:
    """Of the report, the stages and the tests, at any distance, as far as imports are at the top."""
    wanted = declared() | {normalize(name) for name in gpu_report.FURTHER}
    tests = [test.removesuffix(".py").replace("/", ".") for test in gpu_report.TESTS]
    stages = [f"pipelines.stages.{path.stem}" for path in (ROOT / "pipelines/stages").glob("*.py")]
    start = [*(part.command[0] for part in ALL), *tests, *stages, "tests.conftest"]
    seen, missing = follow_imports(start, wanted)
    assert {"pipelines.stages.train", "convs2s.train.loop"} <= seen
    assert missing == set()


def test_a_part_that_fails_or_is_late_leaves_the_others(tmp_path: Path) -> None:
    """Each part is a process, so even one that breaks the driver's state or never ends costs only itself."""
    parts = [
        gpu_report.Part("a", "One that fails", ("no_such_module",), 60),
        gpu_report.Part("b", "One that works", ("json.tool", "--help"), 60, toy=("json.tool", "--help")),
    ]
    gpu_report.write_report(tmp_path, parts, is_toy=True)
    text = (tmp_path / "report.md").read_text(encoding="utf-8")
    assert "No module named no_such_module" in text
    assert "exit status 1, " in text
    assert "exit status 0, " in text
    assert list(gpu_report.run(["http.server", "0"], 0.3))[-1].startswith("\nended, as its time was up, ")


def test_without_a_gpu_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """A report of nothing but errors would take minutes."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(ValueError, match=r"expected a GPU, but PyTorch .* run make gpu-report TOY=1"):
        gpu_report.main([])


def test_each_module_that_measures_is_a_part() -> None:
    """What is no part of the report is not run by `make gpu-report TOY=1`, nor here."""
    folder = ROOT / "benchmarks/gpu_report"
    programs = {f.stem for f in folder.glob("[!_]*.py") if "__name__ ==" in f.read_text(encoding="utf-8")}
    modules = {part.command[0] for part in ALL} - {"pytest", "benchmarks.text_to_text"}
    assert modules == {f"benchmarks.gpu_report.{name}" for name in programs}


def test_rows_are_kept_where_a_part_changes_the_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The stages of the default preset run in a folder of their own; the report's path may be relative."""
    (tmp_path / "stages").mkdir()
    monkeypatch.chdir(tmp_path)
    report = Report(Path("rows.json"))
    monkeypatch.chdir("stages")
    report.table(("stage", "seconds"))
    report.add(stage="download", seconds=1.0)
    assert json.loads((tmp_path / "rows.json").read_text())["results"][0]["stage"] == "download"


@pytest.mark.parametrize("variant", updates.VARIANTS)
def test_updates_have_the_loss_of_a_gpu(variant: str) -> None:
    """At once, but for the variant that is to show what parts take."""
    with updates.build("multi30k-en-de", 100, variant, torch.device("cpu"), toy=True) as (training, update):
        assert isinstance(training.softmax, LossInParts) == (variant == "in parts")
        if "compiled" not in variant:
            assert update().isfinite().all()
