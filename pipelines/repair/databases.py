"""DVC's SQLite databases: the hashes of files that it has seen, and the links that it has made.

They only save time, and DVC recreates missing ones; but with a damaged one, every command fails.
By default they are in /var/tmp/dvc, where any user of the machine can replace them, for example with one that
gives the old hash for a changed file.
"""

import contextlib
import os
import sqlite3
from pathlib import Path
from typing import Any

from dvc.config import Config

from pipelines.repair.local_config import write_local
from pipelines.repair.locks import idle

OWN = Path(".dvc/tmp/site")  # where they are kept instead


def keep_own(root: Path) -> None:
    """Have DVC keep this clone's databases in the clone, where no other user can reach them.

    A configured location is kept, unless it belongs to another clone, of which this one is a copy.
    """
    if not (root / ".dvc").is_dir():  # not a DVC repository
        return
    config, own = Config(str(root / ".dvc")), root / OWN
    chosen = os.environ.get("DVC_SITE_CACHE_DIR") or config.get("core", {}).get("site_cache_dir")
    if chosen and not is_of_another_clone(Path(chosen), root):
        if Path(chosen) != own:
            return
    else:
        write_local(root, {"core": {"site_cache_dir": str(own)}})
    own.mkdir(mode=0o700, parents=True, exist_ok=True)  # DVC makes what is below world-writable


def is_of_another_clone(place: Path, root: Path) -> bool:
    """Return whether a location belongs to another clone; a clone that contains this one does not count."""
    return place.parts[-3:] == OWN.parts and not root.is_relative_to(place.parents[2])


def repair_databases(root: Path) -> list[str]:
    """Remove this clone's damaged databases; return what was done.

    Raises:
        ValueError: if one is damaged and a DVC command is running.
    """
    sentences = []
    for path in sorted((root / OWN).rglob("*.db")):
        if is_damaged(path):
            with idle(root, path):
                for file in path.parent.glob(f"{path.name}*"):  # with its journal
                    file.unlink()
            sentences.append(f"{path} was damaged; removed it. DVC hashes files again, which takes a while.")
    return sentences


def is_damaged(path: Path) -> bool:
    """Return whether SQLite cannot read a database or finds errors in it; a locked one is not damaged."""
    try:
        with contextlib.closing(sqlite3.connect(path, timeout=0.1)) as database:
            faults: list[Any] = database.execute("PRAGMA quick_check").fetchall()
    except sqlite3.OperationalError as error:
        return "locked" not in str(error)
    except sqlite3.DatabaseError:
        return True
    return faults != [("ok",)]
