"""The report of a GPU: all of it runs on a CPU, and what it compares is the same computation."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from benchmarks.gpu_report import __main__ as gpu_report
from tests.docs.pages import ROOT


@pytest.mark.slow
def test_all_parts_run(tmp_path: Path) -> None:
    """Time on a GPU is rare: what the report measures must have run before, to its end."""
    command = ["make", "gpu-report", f"PYTHON={sys.executable}", "TOY=1", f"OUT={tmp_path}"]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
    text = (tmp_path / "report.md").read_text(encoding="utf-8")
    titles = [part.title for part in gpu_report.parts([])]
    assert [line[3:] for line in text.splitlines() if line.startswith("## ")] == titles
    assert text.count("exit status 0, ") == len(titles)
    assert text in done.stdout
    results = json.loads((tmp_path / "report.json").read_text(encoding="utf-8"))
    assert list(results) == titles[:-1]
    for part in results.values():
        assert {"cpu", "python", "torch"} <= part["machine"].keys()
        assert part["results"]
    searches = results["Search"]["results"]
    assert {row["search"] for row in searches} == {"host", "device"}
    assert all(row["same"] == "40 of 40" for row in searches if row["precision"] == "float32")
    differences = [row["difference"] for row in results["Updates"]["results"] if "difference" in row]
    assert len(differences) == 2
    assert max(differences) < 1e-5


def test_a_part_that_fails_or_is_late_leaves_the_others(tmp_path: Path) -> None:
    """Each part is a process, so even one that breaks the driver's state or never ends costs only itself."""
    parts = [
        gpu_report.Part("One that fails", ("no_such_module",), 60),
        gpu_report.Part("One that is late", ("http.server", "0"), 60, toy=("http.server", "0")),
        gpu_report.Part("One that works", ("json.tool", "--help"), 60, toy=("json.tool", "--help")),
    ]
    gpu_report.write_report(tmp_path, [parts[0], parts[2]], is_toy=True)
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
    modules = {part.command[0] for part in gpu_report.parts([])} - {"pytest"}
    assert modules == {f"benchmarks.gpu_report.{name}" for name in programs}
