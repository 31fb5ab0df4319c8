"""Run another program, such as git."""

import subprocess
from pathlib import Path


class CommandFailed(RuntimeError):
    """A program ended with an error; the message has the command and the last line it wrote to stderr."""


def run(*arguments: str, cwd: Path) -> str:
    """Run a program in a folder; return what it prints, without the newline at the end.

    Raises:
        CommandFailed: if its exit status is not 0.
    """
    done = subprocess.run(arguments, cwd=cwd, capture_output=True, text=True, check=False)
    if done.returncode:
        reason = done.stderr.strip().rpartition("\n")[2] or f"exit status {done.returncode}"
        raise CommandFailed(f"{' '.join(arguments)} failed in {cwd}: {reason}")
    return done.stdout.rstrip("\n")
