"""Set aside DVC's own files that a kill has left unreadable: `python -m pipelines.repair`.

DVC makes them anew. It writes `.dvc/tmp/rwlock` and `dvc.lock` in place, so a kill can leave them empty or
truncated, and every later command fails. `make install`, `make repro` and the flows do this first.
"""

import argparse
import contextlib
import json
import os
import shutil
import sqlite3
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from configobj import ConfigObj
from dvc.lock import LockError, make_lock
from dvc.schema import COMPILED_LOCKFILE_SCHEMA
from dvc.utils.serialize import YAMLFileCorruptedError, load_yaml
from voluptuous import Invalid

from convs2s.base.code_folders import describe_risk
from convs2s.base.messages import report_errors
from pipelines import shell
from pipelines.check import CONFLICT

SITE = Path(".dvc/tmp/site")
DAMAGED = Path(".dvc/tmp/damaged")
RUNS = Path(".dvc/cache/runs")
LOCK = Path(".dvc/tmp/lock")  # which DVC holds unless it runs a stage
UNFINISHED = f".{'?' * 22}.tmp"  # the names of files that DVC is writing


def repair(root: Path) -> list[str]:
    """Move DVC's unreadable files to .dvc/tmp/damaged, unless DVC is at work; return a sentence for each.

    Raises a PermissionError if this user cannot write here, as DVC has to, or if others can write where DVC
    is to keep its databases.
    """
    root = root.resolve()
    if not (root / ".dvc").is_dir():
        return []
    if not all(os.access(folder, os.W_OK) for folder in (root, root / ".dvc")):
        raise PermissionError(
            f"{root}: expected a folder that this user can write, as DVC keeps its state and outputs in it. "
            "Run in a clone of your own; see docs/machines.md"
        )
    chosen = os.environ.get("DVC_SITE_CACHE_DIR")
    if chosen and (risk := describe_risk(Path(chosen))):
        raise PermissionError(
            "DVC_SITE_CACHE_DIR: expected a folder that only you can change, as DVC keeps pickles "
            f"there, which run code, but {risk}. Choose one made with mkdir -m 700, or unset it."
        )
    # DVC's databases would be in /var/tmp/dvc, where any user of the machine can replace them. The path is
    # absolute because DVC takes another as relative to the working directory; it makes folders open to all.
    (root / SITE).mkdir(mode=0o700, parents=True, exist_ok=True)
    (root / SITE).chmod(0o700)  # also if it was copied, with the copier's mode
    write_local_config(root, {"core": {"site_cache_dir": str(root / SITE)}})
    with contextlib.suppress(LockError), make_lock(str(root / LOCK)):
        # What a killed DVC was copying: DVC ignores it, but a stage that reads the folder would read it, too.
        for path in (root / "data").rglob(UNFINISHED):
            path.unlink(missing_ok=True)
        # A record that DVC had not yet written into its folder: DVC fails on the empty folder every time.
        for folder in (root / RUNS).glob("*/*"):
            with contextlib.suppress(OSError):
                folder.rmdir()
        unreadable = list(find_unreadable(root))
        (root / DAMAGED).mkdir(exist_ok=True)
        for path in unreadable:
            shutil.move(path, root / DAMAGED / path.name)
            if path.name == "dvc.lock":  # DVC compares what it records with the files, and has later results
                with contextlib.suppress(shell.CommandFailed):
                    text = shell.run("git", "show", "HEAD:./dvc.lock", cwd=root)
                    path.write_text(text + "\n", encoding="utf-8")
        return [f"{path} was damaged; it is now in {root / DAMAGED}." for path in unreadable]
    return []


def find_unreadable(root: Path) -> Iterator[Path]:
    """Yield DVC's lists of commands and results, and its databases, if DVC could not read them."""
    rwlock = root / ".dvc" / "tmp" / "rwlock"
    lock = root / "dvc.lock"
    try:
        json.loads(rwlock.read_bytes() if rwlock.exists() else "{}")
    except ValueError:
        yield rwlock
    try:
        # A merge conflict is not damage, and is the user's to resolve.
        if lock.exists() and not CONFLICT.search(lock.read_bytes()):
            COMPILED_LOCKFILE_SCHEMA(load_yaml(str(lock)))
    except (YAMLFileCorruptedError, Invalid, ValueError):
        yield lock
    for path in (root / SITE).rglob("*.db"):
        try:
            with contextlib.closing(sqlite3.connect(path)) as database:
                readable = database.execute("PRAGMA quick_check").fetchall() == [("ok",)]
        except sqlite3.DatabaseError as error:
            readable = isinstance(error, sqlite3.OperationalError)  # such as "database is locked"
        if not readable:
            yield from path.parent.glob(f"{path.name}*")  # with its journal


def write_local_config(root: Path, sections: Mapping[str, Mapping[str, object]]) -> None:
    """Set values in .dvc/config.local. DVC's own `Config.edit` fails on a path that is not ASCII."""
    config = ConfigObj(str(root / ".dvc" / "config.local"), encoding="utf-8", interpolation=False)
    for name, values in sections.items():
        config.setdefault(name, {}).update(values)
    config.write()


if __name__ == "__main__":
    argparse.ArgumentParser("python -m pipelines.repair", description=__doc__).parse_args()
    with report_errors("repair", "Use a machine with more memory.", "Run the same command again."):
        for sentence in repair(Path()):
            print(sentence, file=sys.stderr)
