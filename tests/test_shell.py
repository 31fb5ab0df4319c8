"""Running other programs from the pipelines."""

import sys
from pathlib import Path

import pytest

from pipelines.shell import CommandFailed, run


def test_what_a_program_prints_is_returned(tmp_path: Path) -> None:
    """The program runs in the given folder; a leading space, as in `git status --porcelain`, is kept."""
    (tmp_path / "here").touch()
    assert run(sys.executable, "-c", "import os; print(' ', *os.listdir())", cwd=tmp_path) == "  here"


def test_a_failure_has_the_command_its_status_and_its_output(tmp_path: Path) -> None:
    """A program may fail silently, so the output alone would not be enough."""
    with pytest.raises(
        CommandFailed, match=r"(?s)-c '1 / 0' failed in .* with status 1: .*division by zero$"
    ):
        run(sys.executable, "-c", "1 / 0", cwd=tmp_path)
    with pytest.raises(CommandFailed, match=r"exit\(3\)' failed in .* with status 3$"):
        run(sys.executable, "-c", "exit(3)", cwd=tmp_path)
