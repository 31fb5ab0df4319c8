"""Work folders of earlier versions: one checkpoint without checksums, and the best model next to it."""

from pathlib import Path

from convs2s.train.checkpoint import checkpoint_name, read_checkpoint, read_prints

OLDER = "checkpoint.safetensors"


def best_of_older(own: Path, updates: int) -> Path:
    """Return the model folder of the best epoch, which ended after so many updates, once adopted."""
    return own / f"best-{updates}"


def adopt(work: Path, own: Path, prints: dict[str, str]) -> None:
    """Move the checkpoint of an earlier version, if it is undamaged and of this training, to where it is now.

    The checkpoint is moved last, so that a kill in between leaves it to be adopted by the next run.
    """
    older = work / OLDER
    try:
        if not older.is_file() or read_prints(older) != prints:
            return
        state = read_checkpoint(older).state
    except (OSError, ValueError):
        return
    own.mkdir(exist_ok=True)
    moves = [("best", best_of_older(own, state.bests[-1]))] if state.epochs else []
    moves += [("cost.json", own / "cost.json"), (OLDER, own / checkpoint_name(state.updates))]
    for name, target in moves:
        if (work / name).exists():
            (work / name).rename(target)
