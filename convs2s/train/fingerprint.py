"""Everything that a training depends on: it resumes only from a checkpoint with the same fingerprint."""

import contextlib
import hashlib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from convs2s.base.files import atomic_path
from convs2s.config.model import ModelParams
from convs2s.config.section import given
from convs2s.config.train import TrainParams
from convs2s.model.description import DESCRIPTION, digest_of_file

# These decide how long to train, not what an update does. `workers` is the number per
# machine; the total over all machines is part of the fingerprint.
NO_EFFECT = {"max_epochs", "patience", "min_learning_rate", "nodes", "workers"}


def training_fingerprint(
    model: ModelParams,
    train: TrainParams,
    seed: int,
    encoded: Path,
    candidates: Path,
    known: Path,
    workers: int,
    code: Mapping[str, str],
) -> dict[str, str]:
    """Return each setting as text, each file as its hash, and the digests of the code, by name.

    Trainings with equal fingerprints that start from the same checkpoint proceed identically.

    Args:
        candidates: a file, read only with vocabulary selection.
        known: file with the hashes of these files as `hash_files` has found them before.
        workers: processes on all machines.
        code: digests of the code by name.
    """
    files = [
        encoded / split / f"{side}.{array}.npy"
        for split in ("train", "valid")
        for side in ("source", "target")
        for array in ("ids", "offsets")
    ]
    if train.selection:
        files.append(candidates)
    settings: dict[str, Any] = {"seed": seed, "workers": workers, "model": model.model_dump()}
    settings |= {name: value for name, value in train.model_dump().items() if name not in NO_EFFECT}
    prints = {name: json.dumps(value) for name, value in settings.items()}
    if start := given(train.start_from):  # its content counts, not its place
        prints["start_from"] = digest_of_file(start / DESCRIPTION)  # has those of all files
    prints |= hash_files(files, known)
    return prints | {f"code of {name}": digest for name, digest in code.items()}


def hash_files(paths: Iterable[Path], known: Path) -> dict[str, str]:
    """Return the hash of each file; one whose size, time and inode are as before is not read again.

    DVC decides by the same three whether a file has changed.
    """
    before: dict[str, list[Any]] = {}
    found: dict[str, list[Any]] = {}
    with contextlib.suppress(OSError, ValueError):  # missing, or empty after a power failure
        before = json.loads(known.read_text())
    for path in paths:
        status = path.stat()
        facts = [status.st_size, status.st_mtime_ns, status.st_ino]
        found[str(path)] = before.get(str(path), [])
        if found[str(path)][:3] != facts:
            with path.open("rb") as stream:
                found[str(path)] = [*facts, hashlib.file_digest(stream, "blake2b").hexdigest()]
    if found != before:
        with atomic_path(known) as temporary:
            temporary.write_text(json.dumps(found))
    return {name: values[3] for name, values in found.items()}
