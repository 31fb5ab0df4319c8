"""Programs that the pipelines run."""

import sys
from pathlib import Path

import pytest

from pipelines.shell import CommandFailed, run


def test_what_a_program_prints_is_returned(tmp_path: Path) -> None:
    """From the folder given; a first space, as in `git status --porcelain`, remains."""
    (tmp_path / "here").touch()
    assert run(sys.executable, "-c", "import os; print(' ', *os.listdir())", cwd=tmp_path) == "  here"


def test_a_failure_has_the_command_and_its_last_line(tmp_path: Path) -> None:
    """Or the exit status of a program that says nothing."""
    with pytest.raises(CommandFailed, match=r"-c 1 / 0 failed in .*: ZeroDivisionError: division by zero$"):
        run(sys.executable, "-c", "1 / 0", cwd=tmp_path)
    with pytest.raises(CommandFailed, match=r"exit\(3\) failed in .*: exit status 3$"):
        run(sys.executable, "-c", "exit(3)", cwd=tmp_path)
