"""The GPU report, at toy size on the CPU; what it measures has tests of its own."""

from pathlib import Path

import pytest

from benchmarks import gpu_report


@pytest.mark.slow
def test_all_parts_run(tmp_path: Path) -> None:
    """Each is in the report, with a table of speeds."""
    gpu_report.main(["--toy", "--out", str(tmp_path)])
    text = (tmp_path / "report.md").read_text()
    assert text.count("exit status 0") == 3
    assert "| multi30k-en-de | 50 | plain float32 |" in text
    assert "| multi30k-en-de | 50 | compiled bfloat16 |" in text


def test_a_part_that_fails_or_takes_too_long_is_reported() -> None:
    """The parts after it still run."""
    assert gpu_report.run(["no_such_module"], 60).startswith("exit status 1, ")
    assert gpu_report.run(["http.server", "0"], 0).startswith("killed: its time was up")
