"""Repair DVC's own files in a clone after a kill or a disk error.

DVC writes only two of them in place. The others are renamed into place when they are complete, and SQLite
completes or rolls back interrupted writes.
"""

from pathlib import Path

from dvc.config import ConfigError

from pipelines.repair.databases import keep_own, repair_databases
from pipelines.repair.lock_file import repair_lock_file
from pipelines.repair.runs import repair_runs
from pipelines.repair.rwlock import repair_rwlock


def repair(root: Path) -> list[str]:
    """Repair DVC's files in a clone; return a sentence for each repair.

    Safe at any time: files that a running DVC command writes or locks are left alone.

    Args:
        root: folder with dvc.yaml.

    Raises:
        ValueError: if a file is damaged and a DVC command is running, which may still need it, or if DVC's
            configuration is invalid.
    """
    root = root.resolve()
    try:
        keep_own(root)
        rebuilt = repair_databases(root) + repair_runs(root)
    except ConfigError as error:
        raise ValueError(f"{root / '.dvc' / 'config'}: {error}") from None
    return repair_rwlock(root) + repair_lock_file(root) + rebuilt
