"""DVC's databases, in SQLite: the hashes of files that it has seen, and what it has linked.

They only save time, and DVC makes them anew where they are missing; but on a damaged one each command fails.
By default they lie in /var/tmp/dvc, where every user of the machine can put another in their place: one that
says of a changed file what it was before, for example.
"""

import contextlib
import os
import sqlite3
from pathlib import Path
from typing import Any

from dvc.config import Config

from pipelines.repair.local_config import write_local
from pipelines.repair.locks import idle

OWN = Path(".dvc/tmp/site")  # where they lie instead


def keep_own(root: Path) -> None:
    """Have DVC keep this clone's databases in the clone, where no other user can reach them.

    A place that somebody has chosen stays, unless that was for another clone, of which this one is a copy.
    """
    if not (root / ".dvc").is_dir():  # nothing that DVC works in
        return
    config, own = Config(str(root / ".dvc")), root / OWN
    chosen = os.environ.get("DVC_SITE_CACHE_DIR") or config.get("core", {}).get("site_cache_dir")
    if chosen and not is_of_another_clone(Path(chosen), root):
        if Path(chosen) != own:
            return
    else:
        write_local(root, {"core": {"site_cache_dir": str(own)}})
    own.mkdir(mode=0o700, parents=True, exist_ok=True)  # what DVC makes below it, all can write


def is_of_another_clone(place: Path, root: Path) -> bool:
    """Tell whether a place is that of another clone, other than one which this is a copy within."""
    return place.parts[-3:] == OWN.parts and not root.is_relative_to(place.parents[2])


def repair_databases(root: Path) -> list[str]:
    """Remove damaged databases of this clone's own; return what was done.

    Raises:
        ValueError: if one is damaged and a DVC command is at work.
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
    """Tell whether SQLite cannot read a database, or DVC not what it says; one in use is not damaged."""
    try:
        with contextlib.closing(sqlite3.connect(path, timeout=0.1)) as database:
            faults: list[Any] = database.execute("PRAGMA quick_check").fetchall()
    except sqlite3.OperationalError as error:
        return "locked" not in str(error)
    except sqlite3.DatabaseError:
        return True
    return faults != [("ok",)]
