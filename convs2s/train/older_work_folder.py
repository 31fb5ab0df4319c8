"""Work folders of earlier versions: one checkpoint without checksums, and the best model next to it."""

from pathlib import Path

from convs2s.train.checkpoint import checkpoint_name, read_checkpoint, read_prints

OLDER = "checkpoint.safetensors"


def best_of_older(own: Path, updates: int) -> Path:
    """Return where `adopt` puts the model folder of the best epoch, which ended after `updates` updates."""
    return own / f"best-{updates}"


def adopt(work: Path, own: Path, prints: dict[str, str]) -> None:
    """Move an earlier version's checkpoint of this training, if undamaged, to its current location.

    The checkpoint is moved last, so that if this process is killed midway, the next run still adopts it.
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
