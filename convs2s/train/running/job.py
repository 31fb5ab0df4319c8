"""The arguments of a training, and their fingerprint, which a checkpoint must share to be resumed."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from convs2s.config.model import ModelParams
from convs2s.config.section import path_or_none
from convs2s.config.train import RunSection, TrainParams, count_processes
from convs2s.model.description import DESCRIPTION, digest_of_file

# These decide how long to train, not what an update does. `workers` is the number per
# machine; the total over all machines is part of the fingerprint. How many processes take them is not.
NO_EFFECT = {"max_epochs", "patience", "min_learning_rate", "nodes", "workers"}


@dataclass(frozen=True)
class Job:
    """The arguments of `convs2s.train.running.run.train_model`, as each of several workers gets them.

    Attributes:
        mark: names this start in the work folder: the first worker that sees it there writes the outputs.
    """

    model: ModelParams
    train: TrainParams
    run: RunSection
    seed: int
    encoded: Path
    vocabulary: Path
    candidates: Path
    work: Path
    out: Path
    cost: Path
    code: Mapping[str, str]
    mark: str

    @property
    def processes(self) -> int:
        """Processes on each machine."""
        return count_processes(self.train, self.run)

    @property
    def table(self) -> Path:
        """The candidates, read only with vocabulary selection."""
        return self.candidates / "candidates.npz"


def training_fingerprint(job: Job, workers: int) -> dict[str, str]:
    """Return each setting as text, each file as its hash, and the digests of the code, by name.

    Trainings with equal fingerprints that start from the same checkpoint proceed identically; with another
    number of processes, but for rounding. The number of workers is that of all machines. Later keys count
    only where they do not have their default, so that a checkpoint from before they existed still fits.
    """
    train = job.train
    files = [
        job.encoded / split / f"{side}.{array}.npy"
        for split in ("train", "valid")
        for side in ("source", "target")
        for array in ("ids", "offsets")
    ]
    if train.selection:
        files.append(job.table)
    model = job.model.model_dump(exclude_defaults=True)
    settings: dict[str, Any] = {"seed": job.seed, "workers": workers, "model": model}
    settings |= train.model_dump(exclude_defaults=True, exclude=NO_EFFECT)
    prints = {name: json.dumps(value) for name, value in settings.items()}
    start = path_or_none(train.start_from)
    if start is not None:  # its content counts, not its place
        prints["start_from"] = digest_of_file(start / DESCRIPTION)  # has those of all files
    prints |= {str(path): digest_of_file(path) for path in files}
    return prints | {f"code of {name}": digest for name, digest in job.code.items()}


def list_changed(before: Mapping[str, str], after: Mapping[str, str]) -> list[str]:
    """Return the sorted names of what differs between two fingerprints, or is in only one of them."""
    return sorted(name for name in before.keys() | after.keys() if before.get(name) != after.get(name))


def digest_of_library() -> str:
    """Return one digest of this library's code."""
    code = hashlib.sha256()
    for path in sorted(Path(__file__).parents[2].rglob("*.py")):
        code.update(path.read_bytes())
    return code.hexdigest()[:12]
