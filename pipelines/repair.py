"""Set aside DVC's own files that a kill or a disk error has damaged: `python -m pipelines.repair`.

DVC makes all of them anew. It writes `.dvc/tmp/rwlock` and `dvc.lock` in place, so a kill leaves them empty
or truncated, and every later command fails. `make install`, `make repro` and the flows do this first.
"""

import argparse
import contextlib
import fnmatch
import os
import shutil
import sqlite3
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import psutil
from configobj import ConfigObj
from dvc.config import Config
from dvc.lock import LockError, make_lock

from pipelines import shell

SITE = Path(".dvc/tmp/site")
DAMAGED = Path(".dvc/tmp/damaged")
UNFINISHED = f".{'?' * 22}.tmp"  # the names of files that DVC is writing


def repair(root: Path) -> list[str]:
    """Set aside the damaged ones of DVC's files in a clone; return a sentence for each.

    The list of running commands (rwlock) and files that DVC was writing to data/ are deleted without one.
    Changes no file while a DVC command is running in the clone, which may still need it.
    """
    root = root.resolve()
    if not (root / ".dvc").is_dir():
        return []
    keep_databases_private(root)
    with contextlib.suppress(LockError), commands_lock(root):
        if find_dvc(root) is None:
            (root / ".dvc" / "tmp" / "rwlock").unlink(missing_ok=True)  # everyone on this list is dead
            remove_unfinished(root / "data")
            return [f"{path} was damaged; it is now in {root / DAMAGED}." for path in set_aside(root)]
    return []


def remove_unfinished(data: Path) -> None:
    """Remove what a killed DVC command was copying: a stage that reads a whole folder would read it, too."""
    for folder, _, names in os.walk(data):  # a stage that has lost its DVC may be removing files, too
        for name in fnmatch.filter(names, UNFINISHED):
            Path(folder, name).unlink(missing_ok=True)


def keep_databases_private(root: Path) -> None:
    """Have DVC keep its databases in the clone, unless DVC_SITE_CACHE_DIR is set.

    By default they are in /var/tmp/dvc, where any user of the machine can replace them, for example with one
    that gives the old hash for a changed file. The path is absolute, and not in git, because DVC takes a
    relative one as relative to the working directory.
    """
    (root / SITE).mkdir(mode=0o700, parents=True, exist_ok=True)  # DVC makes what is below world-writable
    write_local_config(root, {"core": {"site_cache_dir": str(root / SITE)}})


def write_local_config(root: Path, sections: Mapping[str, Mapping[str, object]]) -> None:
    """Set values in .dvc/config.local. DVC's own `Config.edit` fails on a path that is not ASCII."""
    config = ConfigObj(str(root / ".dvc" / "config.local"), encoding="utf-8", interpolation=False)
    for name, values in sections.items():
        config.setdefault(name, {}).update(values)
    config.write()


@contextlib.contextmanager
def commands_lock(root: Path, wait: bool = False) -> Iterator[None]:
    """Hold the lock that every DVC command holds, except while it runs a stage.

    Raises:
        LockError: unless `wait`, if another process has not released it after 3 s.
    """
    with make_lock(str(root / ".dvc" / "tmp" / "lock"), wait=wait):
        yield


def find_dvc(root: Path) -> psutil.Process | None:
    """Return a DVC command that is running in a clone, if there is one."""
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            is_dvc = "dvc" in {Path(part).name for part in process.cmdline()}
            if is_dvc and Path(process.cwd()).is_relative_to(root):
                return process
    return None


def set_aside(root: Path) -> Iterator[Path]:
    """Move damaged files to .dvc/tmp/damaged; yield them."""
    (root / DAMAGED).mkdir(exist_ok=True)
    for path in [*damaged_databases(root), *damaged_runs(root)]:
        shutil.move(path, root / DAMAGED / path.name)
        yield path
    lock = root / "dvc.lock"
    if lock.exists() and is_truncated(read(lock), "stages"):
        lock.replace(root / DAMAGED / lock.name)
        # DVC compares its records with the files on disk, and finds later results in its run cache.
        with contextlib.suppress(shell.CommandFailed):
            lock.write_text(shell.run("git", "show", "HEAD:./dvc.lock", cwd=root) + "\n", encoding="utf-8")
        yield lock


def damaged_databases(root: Path) -> Iterator[Path]:
    """Yield the databases of file hashes that SQLite cannot read; with one, every DVC command fails."""
    for path in (root / SITE).rglob("*.db"):
        try:
            with contextlib.closing(sqlite3.connect(path)) as database:
                faults = database.execute("PRAGMA quick_check").fetchall()
        except sqlite3.DatabaseError:
            faults = []
        if faults != [("ok",)]:
            yield from path.parent.glob(f"{path.name}*")  # with its journal


def damaged_runs(root: Path) -> Iterator[Path]:
    """Yield the folders of DVC's run cache, one for each stage and its inputs, that are empty or damaged.

    DVC fails on an empty folder, and may take a truncated record for one of fewer outputs.
    """
    cache = Config(str(root / ".dvc")).get("cache", {}).get("dir") or root / ".dvc" / "cache"
    for folder in (Path(cache) / "runs").glob("*/*"):
        records = [*folder.iterdir()]
        if not records or any(path.suffix or is_truncated(read(path), "outs") for path in records):
            yield folder


def read(path: Path) -> str:
    """Return the text of a file that may be damaged."""
    return path.read_text(encoding="utf-8", errors="replace")


def is_truncated(text: str, section: str) -> bool:
    """Return whether a file is cut off: before its section, in a line, or in the record of a path."""
    if not text.endswith("\n") or text.endswith(":\n") or f"\n{section}:" not in f"\n{text}":
        return True
    _, path, record = text.rpartition("- path:")
    return bool(path) and ("size:" not in record or (".dir" in record and "nfiles:" not in record))


if __name__ == "__main__":
    form = argparse.RawDescriptionHelpFormatter
    argparse.ArgumentParser(
        "python -m pipelines.repair", description=__doc__, formatter_class=form
    ).parse_args()
    for repaired in repair(Path()):
        print(repaired, file=sys.stderr)
