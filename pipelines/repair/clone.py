"""Repair what a kill has left of DVC's own files in a clone.

Only two are written in place. DVC's other files get their names when they are complete, and SQLite repairs
its own.
"""

from pathlib import Path

from pipelines.repair.lock_file import repair_lock_file
from pipelines.repair.rwlock import repair_rwlock


def repair(root: Path) -> list[str]:
    """Repair DVC's files in a clone; return a sentence for each repair.

    Safe at any time: what a living DVC command writes or holds is left alone.

    Args:
        root: folder with dvc.yaml.

    Raises:
        ValueError: if a file is damaged and a DVC command is at work, which may still need it.
    """
    root = root.resolve()
    return repair_rwlock(root) + repair_lock_file(root)
