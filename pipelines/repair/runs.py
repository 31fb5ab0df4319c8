"""DVC's cache of runs: a folder for each stage and what it was run on, with a record of what it gave.

A kill can leave a folder empty, or with a record that is cut, under a name for the time being. DVC ends with
an error at the first, each time, and may take the second for a record of fewer outputs.
"""

import re
from pathlib import Path

from dvc.config import Config

from pipelines.repair.locks import idle

NAME = re.compile(r"[0-9a-f]{64}")  # hash of the content


def repair_runs(root: Path) -> list[str]:
    """Remove what is damaged; return what was done. DVC then runs the stage again.

    Raises:
        ValueError: if a DVC command is at work, which may be about to write there.
    """
    runs = Path(Config(str(root / ".dvc")).get("cache", {}).get("dir") or root / ".dvc" / "cache") / "runs"
    sentences = []
    for folder in runs.glob("*/*"):
        damaged = [path for path in folder.iterdir() if not is_whole(path)]
        if damaged or not any(folder.iterdir()):
            with idle(root, folder):
                for path in damaged:
                    path.unlink()
                if not any(folder.iterdir()):
                    folder.rmdir()
            sentences.append(f"{folder} was damaged or empty; removed it.")
    return sentences


def is_whole(path: Path) -> bool:
    """Tell whether a record has its last name, and is text up to the end of a line."""
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        return False
    return bool(NAME.fullmatch(path.name)) and text.endswith("\n")
