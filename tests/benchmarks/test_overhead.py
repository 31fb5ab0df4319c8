"""The start-up cost of commands: they are run whole, and a failing command is an error."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks import overhead
from benchmarks.__main__ import benchmarks
from convs2s.cli import parser


def test_commands_take_turns_and_are_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """By wall and processor time, Python alone is faster than a tenth of a second of work."""
    work = "import time\nend = time.process_time() + 0.1\nwhile time.process_time() < end: pass"
    monkeypatch.setattr(overhead, "IMPORTS", {"nothing": "pass", "work": work})
    out = tmp_path / "overhead.json"
    overhead.main(["--no-dvc", "--rounds", "1", "--json", str(out)])
    assert "| work |" in capsys.readouterr().out
    nothing, work_done = json.loads(out.read_text(encoding="utf-8"))["results"]
    for key in ("seconds", "processor_seconds"):
        assert 0 < nothing[key]["median"] < work_done[key]["median"]
        assert work_done[key]["median"] >= 0.1


def test_what_would_not_be_measured_is_not_run(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The time of a failure is not that of the work, and a stage that runs is not overhead."""
    with pytest.raises(subprocess.CalledProcessError):
        overhead.cost([sys.executable, "-c", "import sys; sys.exit(input())"])
    monkeypatch.setattr(overhead, "describe_staleness", lambda _: "train would rerun.")
    assert overhead.dvc_commands() == {}
    assert "train would rerun." in capsys.readouterr().err
    monkeypatch.setattr(overhead, "describe_staleness", lambda _: "")
    assert len(overhead.dvc_commands()) == 2


def test_benchmarks_and_their_commands_exist() -> None:
    """Each benchmark is listed with its first line, shared modules are not; options are the command's."""
    found = benchmarks()
    assert {"align", "gpu_report", "overhead", "table3", "train_step", "translate"} <= set(found)
    assert "machine" not in found
    assert found["overhead"].startswith("Startup overhead")
    options = parser().parse_args(overhead.translate_command(Path("model"))[3:])
    assert (options.model, options.device) == ([Path("model")], "cpu")
