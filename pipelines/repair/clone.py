"""Repair what a kill, or a disk, has left of DVC's own files in a clone.

Only two are written in place. DVC's other files get their names when they are complete, and SQLite completes
or undoes what a kill has interrupted.
"""

from pathlib import Path

from dvc.config import ConfigError

from pipelines.repair.databases import keep_own, repair_databases
from pipelines.repair.lock_file import repair_lock_file
from pipelines.repair.runs import repair_runs
from pipelines.repair.rwlock import repair_rwlock


def repair(root: Path) -> list[str]:
    """Repair DVC's files in a clone; return a sentence for each repair.

    Safe at any time: what a living DVC command writes or holds is left alone.

    Args:
        root: folder with dvc.yaml.

    Raises:
        ValueError: if a file is damaged and a DVC command is at work, which may still need it, or if DVC's
            configuration is faulty.
    """
    root = root.resolve()
    try:
        keep_own(root)
        rebuilt = repair_databases(root) + repair_runs(root)
    except ConfigError as error:
        raise ValueError(f"{root / '.dvc' / 'config'}: {error}") from None
    return repair_rwlock(root) + repair_lock_file(root) + rebuilt
