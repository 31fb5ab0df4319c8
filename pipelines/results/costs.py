"""What trainings took: hardware, hours and speed, from the files that they leave beside their checkpoints."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Literal

from convs2s.config.load import load_params
from convs2s.config.section import Section
from convs2s.train.cost import Session, file_name, read_sessions, target_tokens_per_second


class TrainingCost(Section):
    """What trainings took, all together."""

    hardware: tuple[str, ...]  # number and name of the devices of each training, without repetition
    hours: dict[Literal["GPU", "CPU core"], float]  # times devices, all trainings added
    torch: tuple[str, ...]  # versions of PyTorch
    target_tokens_per_second: float | None = None  # of updates alone, all workers; null in older records


def cost_of(models: Iterable[str], kept: Sequence[Path]) -> dict[str, Any] | None:
    """Return what the trainings of these models took, as a record has it; None if it is unknown for one.

    Args:
        models: as `file_name` names their costs; one that several experiments share counts once.
        kept: folders where trainings have left their costs.
    """
    sessions: list[Session] = []
    for name in dict.fromkeys(models):
        found = next((s for folder in kept if (s := read_sessions(folder / name))), None)
        if found is None:
            return None
        sessions += found
    hours = dict.fromkeys((one.unit for one in sessions), 0.0)
    for one in sessions:
        hours[one.unit] += one.seconds * one.count / 3600
    speed = target_tokens_per_second(sessions)
    return {
        "hardware": list(dict.fromkeys(f"{one.count} x {one.device}" for one in sessions)),
        "hours": {unit: round(value, 4) for unit, value in hours.items()},
        "torch": list(dict.fromkeys(one.torch for one in sessions)),
        "target_tokens_per_second": None if speed is None else round(speed, 1),
    }


def cost_of_workspace(root: Path, others: Sequence[Path] = ()) -> dict[str, Any] | None:
    """Return what the trainings in data/ took; None if it is unknown for one of them.

    Args:
        others: further workspaces, from which a training may have come by DVC's cache.
    """
    models = [weights(root, seed) for seed in load_params(root / "params.yaml").train.seeds]
    kept = [folder for place in (root, *others) for folder in kept_costs(place)]
    return cost_of(map(file_name, models), kept) if all(path.is_file() for path in models) else None


def speed_of(root: Path, others: Sequence[Path]) -> float | None:
    """Return the target tokens per second of the trainings in data/; None if unknown."""
    return (cost_of_workspace(root, others) or {}).get("target_tokens_per_second")


def weights(root: Path, seed: int) -> Path:
    """Return the path of the weights of a training."""
    return root / "data" / "trained" / str(seed) / "model" / "weights.safetensors"


def kept_costs(root: Path) -> list[Path]:
    """Return the folders where trainings have left what they took."""
    return sorted(root.glob("data/checkpoints/*/costs"))
