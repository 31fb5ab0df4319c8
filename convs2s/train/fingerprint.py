"""What a training depends on: only a checkpoint with the same fingerprint is resumed."""

import hashlib
import json
from pathlib import Path
from typing import Any

from convs2s.config.model import ModelParams
from convs2s.config.older import without_added_keys
from convs2s.config.train import TrainParams

# They decide how long to train and how often to save, not what an update does. `workers` counts those of one
# machine; the number on all machines is part of the fingerprint.
NO_EFFECT = {
    "seeds",
    "max_epochs",
    "patience",
    "min_learning_rate",
    "checkpoint_updates",
    "nodes",
    "rendezvous",
    "workers",
}


def training_fingerprint(
    model: ModelParams, train: TrainParams, seed: int, encoded: Path, candidates: Path, workers: int
) -> dict[str, str]:
    """Return the fingerprint of a training.

    An option added later (`convs2s.config.older`) is left out while it has its default, so that checkpoints
    from before it are resumed. `candidates` is a file, read only with vocabulary selection.

    Args:
        workers: processes on all machines.
    """
    files = [
        encoded / split / f"{side}.{array}.npy"
        for split in ("train", "valid")
        for side in ("source", "target")
        for array in ("ids", "offsets")
    ]
    options = without_added_keys("train", train.model_dump())
    settings = {"seed": seed, "workers": workers, "model": without_added_keys("model", model.model_dump())}
    settings |= {name: value for name, value in options.items() if name not in NO_EFFECT}
    return fingerprint(settings, [*files, candidates] if train.selection else files)


def fingerprint(settings: dict[str, Any], files: list[Path]) -> dict[str, str]:
    """Return each setting as text and each file as its hash, by name.

    From the same checkpoint, two trainings with equal fingerprints take the same course.
    """
    prints = {name: json.dumps(value) for name, value in settings.items()}
    for path in files:
        with path.open("rb") as stream:
            prints[str(path)] = hashlib.file_digest(stream, "blake2b").hexdigest()
    return prints
