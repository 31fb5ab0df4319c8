"""DVC's run cache: a folder for each stage and its inputs, with a record of its outputs.

A kill can leave a folder empty, or with a truncated record under a temporary name. DVC fails each
time it looks into the former, and may take the latter for a record of fewer outputs.
"""

import re
from pathlib import Path

from dvc.config import Config

from pipelines.repair.locks import idle

NAME = re.compile(r"[0-9a-f]{64}")  # hash of the contents


def repair_runs(root: Path) -> list[str]:
    """Remove damaged folders and records; return what was done. DVC then reruns the stage.

    Raises:
        ValueError: if a DVC command is running, which may be about to write there.
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
    """Return whether a record has its final name, and is text that ends with a newline."""
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        return False
    return bool(NAME.fullmatch(path.name)) and text.endswith("\n")
