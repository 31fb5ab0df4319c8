"""Stage train@SEED: encoded pairs -> the best model of one training, its metrics and curves."""

from pathlib import Path

from convs2s.base.files import read_lines
from convs2s.config.model import ModelParams
from convs2s.config.train import TrainParams
from convs2s.train.run import train_model
from convs2s.train.work_folder import remove_ended


def run(
    model: ModelParams,
    train: TrainParams,
    seed: int,
    snapshot: Path,
    encoded: Path,
    vocabulary: Path,
    candidates: Path,
    work: Path,
    out: Path,
) -> None:
    """Train; with several workers, this process starts them and waits.

    Checkpoints live in `work`, which survives an interruption; `out` gets model/, metrics.json and curves/. A
    checkpoint is of use only to the code that wrote it, which `snapshot` names.
    """
    lines = [line.split(" ", 2) for line in read_lines(snapshot)]
    digests = {name: digest for kind, digest, name in lines if kind != "param"}
    train_model(model, train, seed, encoded, vocabulary, candidates, work, out, code=digests)


def finish(work: Path) -> None:
    """Remove the checkpoints of the training that has ended."""
    remove_ended(work)
