"""Stage train@SEED: encoded pairs -> the best model of one training, its metrics and curves."""

import sys
from pathlib import Path

from convs2s.config.load import load_params
from convs2s.config.model import ModelParams
from convs2s.config.train import TrainParams
from convs2s.train.run import train_model


def run(
    model: ModelParams,
    train: TrainParams,
    seed: int,
    encoded: Path,
    vocabulary: Path,
    candidates: Path,
    work: Path,
    out: Path,
) -> None:
    """Train; with several workers, this process starts them and waits.

    Checkpoints live in `work`, which outlasts an interruption; `out` gets model/, metrics.json and curves/.
    """
    train_model(model, train, seed, encoded, vocabulary, candidates, work, out)


if __name__ == "__main__":
    everything = load_params()
    run(everything.model, everything.train, int(sys.argv[1]), *map(Path, sys.argv[2:]))
