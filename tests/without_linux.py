"""Run the library's commands where what only Linux has is absent: `python -m tests.without_linux MODEL`.

It is no Mac, only a Linux without what macOS lacks. The other packages have their own code for macOS, so they
are imported before `sys.platform` changes; ours comes last.
"""

import os
import select
import signal
import sys

ABSENT = {
    os: (
        "sched_get", "sched_set", "sched_rr", "posix_fa", "POSIX_FADV", "pidfd_", "P_PIDFD", "memfd_", "MFD_",
        "eventfd", "EFD_", "timerfd_", "TFD_", "splice", "SPLICE_", "copy_file_range", "getrandom", "GRND_",
        "getxattr", "setxattr", "listxattr", "removexattr", "XATTR_", "O_TMPFILE", "O_DIRECT", "O_PATH",
        "O_NOATIME", "fdatasync", "pipe2", "getres", "setres", "unshare", "setns", "CLONE_",
    ),
    signal: ("SIGRTM", "SIGPWR", "SIGSTKFLT", "SIGPOLL", "SIGCLD", "sigtimedwait", "sigwaitinfo"),
    select: ("epoll", "EPOLL"),
}  # fmt: skip
"""Names that these modules have on Linux only, or what they begin with."""

for module, starts in ABSENT.items():
    present = {name for name in dir(module) if name.startswith(starts) and name != "O_DIRECTORY"}
    assert present, module
    for name in present:
        delattr(module, name)

import asyncio  # noqa: E402, F401  # what follows sees the modules as they are now
import ctypes  # noqa: E402
import multiprocessing  # noqa: E402
from pathlib import Path  # noqa: E402
from typing import Any  # noqa: E402

import fastapi  # noqa: E402, F401
import matplotlib.figure  # noqa: E402, F401
import numba.core.caching  # noqa: E402, F401
import sacremoses  # noqa: E402, F401
import sentencepiece  # noqa: E402, F401
import sentencex  # noqa: E402, F401
import torch  # noqa: E402, F401
import uvicorn  # noqa: E402, F401

FOLDERS = ("/proc", "/sys", "/dev/shm")


def refuse(event: str, arguments: tuple[Any, ...]) -> None:
    """Let a file of Linux's own folders be opened by no one."""
    if event in ("open", "os.listdir", "os.scandir") and str(arguments[0]).startswith(FOLDERS):
        raise FileNotFoundError(2, "No such file or directory", arguments[0])


class Library(ctypes.CDLL):
    """A library without the functions of Linux's kernel."""

    def __getattr__(self, name: str) -> Any:
        if name == "prctl":
            raise AttributeError("dlsym(RTLD_DEFAULT, prctl): symbol not found")
        return super().__getattr__(name)


def leave_linux() -> None:
    """Take away what is no name of a module."""
    sys.platform = "darwin"
    sys.addaudithook(refuse)
    ctypes.CDLL = Library  # type: ignore[misc]
    multiprocessing.set_start_method("spawn")


def main(path: str) -> None:
    """Translate, draw, and serve until a signal comes."""
    leave_linux()
    from convs2s.base.files import write_lines  # noqa: PLC0415
    from convs2s.base.parallel import cores  # noqa: PLC0415
    from convs2s.cli import main as convs2s  # noqa: PLC0415

    assert cores() == os.cpu_count()
    other = Path(f".target.{os.getppid()}.part")  # of a process that is writing the same output
    other.touch()
    write_lines(Path("source"), ["ein Haus", "noch eins", "ein Hund und eine Maus"])
    model = "--model", path
    search = "--input", "source", "--output", "target", "--batch-sentences", "1"
    assert convs2s(["translate", *model, *search]) == 0
    assert convs2s(["translate", *model, *search, "--processes", "2"]) == 0
    assert other.exists()
    assert convs2s(["attention", "ein Haus", *model, "--out", "attention.png"]) == 0
    sys.exit(convs2s(["serve", *model, "--port", "0"]))


if __name__ == "__main__":
    main(*sys.argv[1:])
