"""The table of faults: each takes an up-to-date repository and does something bad to it.

Python reports each operation on a file to an audit hook before it happens, so a fault at the n-th time that a
process writes, renames, removes or makes a file depends on no timing.
"""

import errno
import os
import shutil
import signal
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from unittest.mock import Mock

from tests.faults import forked, repository, results

CHANGES = {"os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.link", "os.symlink", "os.truncate"}
TO_WRITE = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
RWLOCK = ".dvc/tmp/rwlock"
Fault = Callable[[Path], object]  # called with the folder of a copy of the repository
Action = Callable[[Path], object]  # called with the path of a file


def operations(action: Callable[[int, Path], object], within: Path) -> forked.Hook:
    """Return a hook that calls an action before each operation in a folder, with its number and path."""
    count = 0
    busy = False

    def before(event: str, arguments: tuple[object, ...]) -> None:
        nonlocal count, busy
        writes = event == "open" and isinstance(arguments[2], int) and arguments[2] & TO_WRITE
        if busy or not (event in CHANGES or writes) or isinstance(arguments[0], int):
            return
        busy = True
        try:
            path = Path(os.path.abspath(os.fsdecode(arguments[0])))  # type: ignore[arg-type] # noqa: PTH100
            if path.is_relative_to(within):
                count += 1
                action(count, path)
        finally:
            busy = False

    return lambda: sys.addaudithook(before)


def interrupt(folder: Path, stage: str, hook: forked.Hook, process: str = "") -> None:
    """Make DVC run a stage with a hook in its process, or in DVC's own, that must make the command fail."""
    repository.forget(folder, stage)
    assert forked.start(folder, {process or stage: hook}, "--single-item", stage).wait() != 0


def at(number: int, stage: str, action: Action, process: str = "") -> Fault:
    """Return a fault at the n-th operation of a stage's process, or of DVC's own."""

    def fault(folder: Path) -> None:
        hook = operations(lambda count, path: action(path) if count == number else None, folder)
        interrupt(folder, stage, hook, process)

    return fault


def send(target: str, number: int = signal.SIGKILL) -> Action:
    """Return an action that sends a signal to this process (stage), its parent (dvc) or all (group).

    A stage whose DVC is killed then takes a long time, so that only its watch over DVC can end it.
    """

    def action(_: Path) -> None:
        if target == "group":
            os.killpg(os.getpgid(0), number)
        else:
            os.kill(os.getpid() if target == "stage" else os.getppid(), number)
        if target == "dvc" and number == signal.SIGKILL:
            time.sleep(120)  # longer than forked.left_running waits

    return action


def cut_in_place(folder: Path) -> None:
    """Kill everything while DVC writes its list of commands, half of which is left."""

    def cut(_: int, path: Path) -> None:
        if path == folder / RWLOCK and path.exists():
            halve(folder, RWLOCK)
            send("group")(path)

    interrupt(folder, "filter", operations(cut, folder), "dvc")


def halve(folder: Path, name: str) -> None:
    """Cut a file in half."""
    content = (folder / name).read_bytes()
    (folder / name).write_bytes(content[: len(content) // 2])


def train_twice(folder: Path) -> None:
    """Run two commands at once; one may have to wait, and at least one must succeed."""
    repository.forget(folder, "train@1")
    both = [forked.start(folder, None, "--single-item", "train@1") for _ in range(2)]
    assert 0 in [process.wait() for process in both]


def edit(folder: Path) -> None:
    """Edit what a stage reads while it runs, and undo it later: DVC must not have recorded the stage."""
    path = folder / "data/replaced/1/plain.txt"
    before = path.read_bytes()
    at(4, "evaluate", lambda _: path.write_bytes(before + b"more\n"))(folder)
    assert "evaluate" not in results.lock(folder)
    path.write_bytes(before)


def move(folder: Path) -> None:
    """Run everything in a folder that a shell would take apart, with data/ behind a link; move it back."""
    results.begin_anew(folder)
    shutil.move(folder / "data", folder.with_name("disk"))
    (folder / "data").symlink_to(folder.with_name("disk"))
    place = folder.rename(folder.with_name("-f a'b\"c$HOME Übung 翻译"))
    try:
        assert repository.repro(place) == 0, place.with_suffix(".log").read_text()[-2000:]
    finally:
        place.rename(folder)


NO_SPACE = OSError(errno.ENOSPC, "injected")
CASES: dict[str, Fault] = {
    "kill of all in train@1": at(30, "train@1", send("group")),
    "kill of dvc in train@1": at(40, "train@1", send("dvc")),
    "kill of the stage train@1": at(20, "train@1", send("stage")),
    "kill in DVC": at(50, "filter", send("group"), "dvc"),
    "kill in a write": cut_in_place,
    "SIGINT to all in train@1": at(30, "train@1", send("group", signal.SIGINT)),
    "SIGTERM to dvc in tokenize": at(3, "tokenize@train", send("dvc", signal.SIGTERM)),
    "no space in filter": at(4, "filter", Mock(side_effect=NO_SPACE)),
    "no memory in train@1": at(30, "train@1", Mock(side_effect=MemoryError)),
    "damaged weights": partial(halve, name="data/trained/1/model/weights.safetensors"),
    "two commands at once": train_twice,
    "an edit in evaluate": edit,
    "an odd folder, data is a link": move,
}
