"""Stage train@SEED: encoded pairs -> the best model of one training, its metrics and curves."""

from pathlib import Path

from convs2s.config.load import load_params
from convs2s.config.model import ModelParams
from convs2s.config.train import RunSection, TrainParams
from convs2s.model.description import digest_of_file
from convs2s.train.running.run import train_model
from convs2s.train.running.work_folder import remove_ended
from pipelines.stages._declared import declared


def run(
    model: ModelParams,
    train: TrainParams,
    run: RunSection,
    seed: int,
    encoded: Path,
    vocabulary: Path,
    candidates: Path,
    work: Path,
    out: Path,
    costs: Path,
) -> None:
    """Train; with several workers, this process starts them and waits.

    Checkpoints live in work/SEED, which survives an interruption; out/SEED gets model/, metrics.json and
    curves/, and costs/SEED.json hardware and time, on which no stage depends. A checkpoint is of use only to
    the code that wrote it, which dvc.yaml declares.
    """
    _, files = declared(f"train@{seed}", load_params().model_dump())
    code = {str(path): digest_of_file(path) for path in files if path.suffix == ".py"}
    train_model(
        model,
        train,
        run,
        seed,
        encoded,
        vocabulary,
        candidates,
        work=work / str(seed),
        out=out / str(seed),
        cost=costs / f"{seed}.json",
        code=code,
    )


def finish(work: Path, seed: int) -> None:
    """Remove the checkpoints of the training that has ended."""
    remove_ended(work / str(seed))
