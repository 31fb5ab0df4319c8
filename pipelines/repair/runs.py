"""DVC's cache of runs: a folder for each stage and what it was run on, with a record of what it gave.

DVC drops records that are no valid YAML. But it ends with an error, each time, at one that is not even text,
and at a folder without any, as a kill can leave it.
"""

from pathlib import Path

from dvc.config import Config

from pipelines.repair.locks import idle


def repair_runs(root: Path) -> list[str]:
    """Remove what is damaged; return what was done. DVC then runs the stage again.

    Raises:
        ValueError: if a DVC command is at work, which may be about to write there.
    """
    runs = Path(Config(str(root / ".dvc")).get("cache", {}).get("dir") or root / ".dvc" / "cache") / "runs"
    sentences = []
    for folder in runs.glob("*/*"):
        damaged = [path for path in folder.iterdir() if not is_text(path)]
        if damaged or not any(folder.iterdir()):
            with idle(root, folder):
                for path in damaged:
                    path.unlink()
                if not any(folder.iterdir()):
                    folder.rmdir()
            sentences.append(f"{folder} was damaged or empty; removed it.")
    return sentences


def is_text(path: Path) -> bool:
    """Tell whether a file is UTF-8."""
    try:
        path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        return False
    return True
