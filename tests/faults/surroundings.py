"""Where and how a run is started: each case runs all stages from scratch, in unusual surroundings."""

import functools
import locale
import os
import resource
import shutil
from collections.abc import Callable
from pathlib import Path

from tests.faults import forked, repository

ANYBODY = 65534  # the user `nobody`


def little_is_allowed() -> None:
    """Allow what a small container does: 64 open files, ASCII, no access by others, nobody's name."""
    resource.setrlimit(resource.RLIMIT_NOFILE, (64, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
    os.umask(0o077)
    os.environ.update({"LANG": "C", "LC_ALL": "C"})
    locale.setlocale(locale.LC_ALL, "C")
    for name in ("HOME", "USER", "LOGNAME"):
        os.environ.pop(name, None)


def no_folder_outside() -> None:
    """Leave no folder outside the clone that can be written."""
    os.environ.update({"HOME": "/proc", "TMPDIR": "/nonexistent"})


def begin_anew(folder: Path) -> None:
    """Delete everything that has been computed; the user's files stay."""
    for path in [*(folder / "data").iterdir(), folder / ".dvc" / "cache", folder / ".dvc" / "tmp"]:
        if path.name not in {"own", "none"}:
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    (folder / "dvc.lock").unlink()


def run_with(hook: forked.Hook, folder: Path) -> None:
    """Run everything with a hook in DVC and, since they are its children, in all stages."""
    begin_anew(folder)
    assert repository.repro(folder, {"dvc": hook}) == 0, folder.with_suffix(".log").read_text()[-2000:]


def odd_name(folder: Path) -> None:
    """Run everything in a folder with a name that a shell would take apart, then move it back."""
    begin_anew(folder)
    place = folder.rename(folder.with_name("-f a'b\"c$HOME Übung 翻译"))
    try:
        assert repository.repro(place) == 0, place.with_suffix(".log").read_text()[-2000:]
    finally:
        place.rename(folder)


def linked_data(folder: Path) -> None:
    """Keep data/ on another disk, behind a link."""
    shutil.move(folder / "data", folder.with_name("disk"))
    (folder / "data").symlink_to(folder.with_name("disk"))
    run_with(lambda: None, folder)


def shared_cache(folder: Path) -> None:
    """Run everything at once in two clones with the same cache, to which their outputs are links.

    One may fail or get too few outputs: DVC also reads, and removes, records that another is still writing.
    """
    begin_anew(folder)
    other = repository.copy(folder, folder.with_name("other"))
    for clone in (folder, other):
        with (clone / ".dvc" / "config").open("a") as stream:
            stream.write(f"[cache]\n dir = {folder.with_name('cache')}\n type = hardlink,copy\n")
    for process in [forked.start(clone) for clone in (folder, other)]:
        process.wait()


def wrong_clock(folder: Path) -> None:
    """Set file times as a wrong clock would: most to the year 2100, some to 1970."""
    for number, path in enumerate(sorted((folder / "data").rglob("*"))):
        os.utime(path, (0, 0) if number % 5 == 0 else (4.1e9, 4.1e9))


def read_only(folder: Path) -> None:
    """Run as a user without write permission: the run fails, and leaves nothing behind."""
    repository.forget(folder, "filter")

    def drop_rights() -> None:
        os.setgid(ANYBODY)
        os.setuid(ANYBODY)

    assert forked.start(folder, {"dvc": drop_rights}).wait() != 0


SURROUNDINGS: dict[str, Callable[[Path], None]] = {
    "two clones, one cache": shared_cache,
    "data is a link": linked_data,
    "wrong clock": wrong_clock,
    "umask 077, 64 open files, LANG=C, no HOME, no USER": functools.partial(run_with, little_is_allowed),
    "HOME cannot be written, no TMPDIR": functools.partial(run_with, no_folder_outside),
    "in a folder with quotes, a dollar, other alphabets and a hyphen first": odd_name,
}
if os.getuid() == 0:
    SURROUNDINGS["read-only clone"] = read_only
