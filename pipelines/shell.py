"""Run other programs and wait for them."""

import os
import shlex
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

from convs2s.base.messages import redact


class CommandFailed(RuntimeError):
    """A program is missing, or exited with a nonzero status; the message contains its output."""


def run(*arguments: str, cwd: Path, env: Mapping[str, str] | None = None) -> str:
    """Run a program; return what it prints, without the newline at the end, or raise CommandFailed.

    `env` is added to the variables of this process.
    """
    if shutil.which(arguments[0]) is None:
        raise CommandFailed(f"{arguments[0]}: expected this program on PATH, found none. Install it.")
    done = subprocess.run(
        arguments, cwd=cwd, env={**os.environ, **(env or {})}, capture_output=True, text=True, check=False
    )
    if done.returncode:
        said = redact(done.stderr.strip() or done.stdout.strip())
        status = f"{shlex.join(arguments)} failed in {cwd} with status {done.returncode}"
        raise CommandFailed(f"{status}: {said}" if said else status)
    return done.stdout.rstrip("\n")
