"""Where and how a run is started: each case runs all stages from scratch, in unusual surroundings."""

import functools
import locale
import os
import resource
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

from tests.faults import forked, repository
from tests.faults.injection import Hook

ANYBODY = 65534  # the user `nobody`


def umask() -> None:
    """Make new files readable only by their owner."""
    os.umask(0o077)


def few_descriptors() -> None:
    """Allow only as many open files as the smallest systems do."""
    resource.setrlimit(resource.RLIMIT_NOFILE, (64, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))


def plain_locale() -> None:
    """Set a locale that knows only ASCII, as in cron and many containers."""
    os.environ.update({"LANG": "C", "LC_ALL": "C"})
    locale.setlocale(locale.LC_ALL, "C")


def environment(**changes: str | None) -> Hook:
    """Return a hook that sets variables, or removes them."""

    def hook() -> None:
        for name, value in changes.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value

    return hook


HOOKS: Mapping[str, Hook] = {
    "umask 077": umask,
    "64 open files": few_descriptors,
    "LANG=C": plain_locale,
    "no HOME, no USER": environment(HOME=None, USER=None, LOGNAME=None),
    "HOME cannot be written, no TMPDIR": environment(HOME="/proc", TMPDIR="/nonexistent"),
}
PLACES = {
    "quotes, a dollar and other alphabets": "a'b\"c$HOME Übung 翻译",
    "a hyphen first": "-f",
}


def begin_anew(folder: Path) -> None:
    """Delete everything that has been computed; the user's files stay."""
    for path in [*(folder / "data").iterdir(), folder / ".dvc" / "cache", folder / ".dvc" / "tmp"]:
        if path.name != "own":
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    (folder / "dvc.lock").unlink()


def in_surroundings(hook: Hook, folder: Path) -> None:
    """Run everything with a hook in DVC and, since they are its children, in all stages."""
    begin_anew(folder)
    assert forked.repro(folder, {"dvc": hook}) == 0, folder.with_suffix(".log").read_text()[-2000:]


def elsewhere(name: str, folder: Path) -> None:
    """Run everything in a folder with another name, then move it back."""
    place = folder.with_name(name)
    begin_anew(folder)
    folder.rename(place)
    try:
        assert forked.repro(place) == 0, place.with_suffix(".log").read_text()[-2000:]
    finally:
        place.rename(folder)


def linked_data(folder: Path) -> None:
    """Keep data/ on another disk, behind a link."""
    begin_anew(folder)
    shutil.move(folder / "data", folder.with_name("disk"))
    (folder / "data").symlink_to(folder.with_name("disk"))
    assert forked.repro(folder) == 0, folder.with_suffix(".log").read_text()[-2000:]


def shared_cache(folder: Path) -> None:
    """Run everything at once in two clones with the same cache."""
    begin_anew(folder)
    other = repository.copy(folder, folder.with_name("other"))
    for clone in (folder, other):
        with (clone / ".dvc" / "config").open("a") as stream:
            stream.write(f"[cache]\n dir = {folder.with_name('cache')}\n")
    both = [forked.start(clone) for clone in (folder, other)]
    assert [process.wait() for process in both] == [0, 0]
    assert repository.outputs(folder) == repository.outputs(other)


def future(folder: Path) -> None:
    """Set file times as a wrong clock would: most to the year 2100, some to 1970."""
    for number, path in enumerate(sorted((folder / "data").rglob("*"))):
        os.utime(path, (0, 0) if number % 5 == 0 else (4.1e9, 4.1e9))


def read_only(folder: Path) -> None:
    """Run as a user without write permission: the run fails, and leaves nothing behind."""
    repository.forget(folder, "filter")

    def become_anybody() -> None:
        os.setgid(ANYBODY)
        os.setuid(ANYBODY)

    assert forked.start(folder, {"dvc": become_anybody}).wait() != 0


def surroundings() -> dict[str, Callable[[Path], None]]:
    """Return a function for each of the surroundings, by name."""
    found: dict[str, Callable[[Path], None]] = {
        name: functools.partial(in_surroundings, hook) for name, hook in HOOKS.items()
    }
    found |= {f"in {name}": functools.partial(elsewhere, place) for name, place in PLACES.items()}
    found |= {"data is a link": linked_data, "two clones, one cache": shared_cache, "wrong clock": future}
    if os.getuid() == 0:
        found["read-only clone"] = read_only
    return found
