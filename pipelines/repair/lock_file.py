"""dvc.lock, the record of each stage's inputs and outputs.

DVC writes it in place after every stage. A kill during the write leaves it empty or truncated: unreadable, or
missing stages, which would then rerun unless DVC's run cache has them.
"""

import re
from pathlib import Path

from convs2s.text.corpus.files import atomic_path
from pipelines.repair.locks import idle

HEAD = "schema: '2.0'\nstages:\n"
STAGES = re.compile(r"^stages:", re.MULTILINE)
STAGE = re.compile(r"^  (?=\S)", re.MULTILINE)  # where the record of a stage begins


def repair_lock_file(root: Path) -> list[str]:
    """Complete a truncated dvc.lock; if it is whole, keep a copy for this purpose. Return what was done.

    A completed file has its own whole records, and those of the copy that it lacks. DVC compares all of them
    with the files on disk, so an outdated record only means a stage to rerun or to find in the run cache.

    Raises:
        ValueError: if it is truncated and a DVC command is running.
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
    """Return the text of a file; empty if there is no such file."""
    return path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""


def is_cut(text: str) -> bool:
    """Return whether dvc.lock is truncated: within a line, before a list, or in the record of a path."""
    if not text.endswith("\n") or text.endswith(":\n") or not STAGES.search(text):
        return True
    _, path, record = text.rpartition("    - path:")
    return bool(path) and ("size:" not in record or (".dir" in record and "nfiles:" not in record))


def stages(text: str) -> dict[str, str]:
    """Return the record of each stage, by its first line."""
    records = STAGE.split(text.partition("\nstages:\n")[2])[1:]
    return {record.partition("\n")[0]: record for record in records}


def complete(path: Path, copy: Path) -> list[str]:
    """Rewrite dvc.lock from its own whole records and those of a copy."""
    kept = dict(list(stages(read(path)).items())[:-1])  # the last one is truncated
    copied = {name: record for name, record in stages(read(copy)).items() if name not in kept}
    if kept or copied:
        with atomic_path(path) as temporary:
            records = [*kept.values(), *copied.values()]
            temporary.write_text(HEAD + "".join(f"  {one}" for one in records), encoding="utf-8")
    else:
        path.unlink()
    return [
        f"{path} was truncated by a kill; kept {len(kept)} stages, took {len(copied)} from the last copy."
    ]


def keep(path: Path, copy: Path) -> None:
    """Copy dvc.lock if it has changed; DVC may be writing it."""
    text = read(path)
    if text != read(copy) and not is_cut(text):
        with atomic_path(copy) as temporary:
            temporary.write_text(text, encoding="utf-8")
