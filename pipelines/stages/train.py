"""Stage train@SEED: encoded pairs -> the best model of one training, its metrics and curves."""

from pathlib import Path

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

    Checkpoints live in `work`, which survives an interruption; `out` gets model/, metrics.json and curves/.
    """
    train_model(model, train, seed, encoded, vocabulary, candidates, work, out)
