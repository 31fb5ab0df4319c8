"""dvc.lock, the record of what each stage was run on and gave.

DVC writes it in place after every stage. A kill in the middle leaves it empty or cut: unreadable, or short of
stages whose results would then be made again unless DVC's cache of runs has them.
"""

import re
from pathlib import Path

from convs2s.text.corpus.files import atomic_path
from pipelines.repair.locks import idle

HEAD = "schema: '2.0'\nstages:\n"
STAGES = re.compile(r"^stages:", re.MULTILINE)
STAGE = re.compile(r"^  (?=\S)", re.MULTILINE)  # where the record of a stage begins


def repair_lock_file(root: Path) -> list[str]:
    """Complete a dvc.lock that is cut, else keep a copy of it for that; return what was done.

    It then has the stages that were whole, and those of the copy that it lacks. DVC compares all of them with
    what is on disk, so an old record is only a stage to run or to find in the cache of runs.

    Raises:
        ValueError: if it is cut and a DVC command is at work.
    """
    path, copy = root / "dvc.lock", root / ".dvc" / "tmp" / "dvc.lock.whole"
    if not path.exists():
        return []
    if not is_cut(read(path)):
        keep(path, copy)
        return []
    with idle(root, path):
        return complete(path, copy) if is_cut(read(path)) else []


def read(path: Path) -> str:
    """Return the text of a file; none if there is no such file."""
    return path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""


def is_cut(text: str) -> bool:
    """Tell whether dvc.lock ends too early: within a line, before a list, or in the record of a path."""
    if not text.endswith("\n") or text.endswith(":\n") or not STAGES.search(text):
        return True
    _, path, record = text.rpartition("    - path:")
    return bool(path) and ("size:" not in record or (".dir" in record and "nfiles:" not in record))


def stages(text: str) -> dict[str, str]:
    """Return the record of each stage, by its first line."""
    records = STAGE.split(text.partition("\nstages:\n")[2])[1:]
    return {record.partition("\n")[0]: record for record in records}


def complete(path: Path, copy: Path) -> list[str]:
    """Write dvc.lock anew, from the whole records of the old one and a copy."""
    kept = dict(list(stages(read(path)).items())[:-1])  # the last one is cut
    copied = {name: record for name, record in stages(read(copy)).items() if name not in kept}
    if kept or copied:
        with atomic_path(path) as temporary:
            records = [*kept.values(), *copied.values()]
            temporary.write_text(HEAD + "".join(f"  {one}" for one in records), encoding="utf-8")
    else:
        path.unlink()
    return [f"{path} was cut by a kill; kept {len(kept)} stages, took {len(copied)} from the last copy."]


def keep(path: Path, copy: Path) -> None:
    """Copy dvc.lock if it has changed; DVC may be writing it."""
    text = read(path)
    if text != read(copy) and not is_cut(text):
        with atomic_path(copy) as temporary:
            temporary.write_text(text, encoding="utf-8")
