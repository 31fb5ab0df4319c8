"""The cost of trainings: hardware, hours and speed, from the files that they leave next to checkpoints."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

from pydantic import TypeAdapter

from convs2s.config.load import load_params
from convs2s.config.section import Section
from convs2s.model.digests import digest_of_file


class TrainingCost(Section):
    """The total cost of trainings."""

    hardware: tuple[str, ...]  # number and name of the devices of each training, without duplicates
    hours: dict[Literal["GPU", "CPU core"], float]  # times devices, summed over trainings
    torch: tuple[str, ...]  # versions of PyTorch
    target_tokens_per_second: float | None = None  # of updates alone, all workers; null in older records


def weights(workspace: Path) -> Iterator[Path]:
    """Yield the paths of the weights of all trainings of a workspace."""
    for seed in load_params(workspace / "params.yaml").train.seeds:
        yield workspace / f"data/trained/{seed}/model/weights.safetensors"


def cost_of(workspaces: Sequence[Path], places: Sequence[Path]) -> dict[str, Any] | None:
    """Return the cost of the trainings of workspaces, recorded in `places`; None if any is not recorded.

    A model that several workspaces share through DVC's cache counts once.
    """
    models = [path for workspace in workspaces for path in weights(workspace)]
    if not all(path.is_file() for path in models):
        return None
    return cost_of_models(map(cost_file, models), places)


def cost_file(weights: Path) -> str:
    """Return the name of the file that has the cost of a model."""
    return f"{digest_of_file(weights)}.json"


def read_sessions(path: Path) -> list[dict[str, Any]]:
    """Return the sessions that `convs2s.watch.cost` wrote; none if the file is missing or damaged."""
    try:
        return TypeAdapter(list[dict[str, Any]]).validate_json(path.read_bytes())
    except (OSError, ValueError):
        return []


def cost_of_models(names: Iterable[str], places: Sequence[Path]) -> dict[str, Any] | None:
    """Return the cost of training models, which are named as by `cost_file`; None if any is not recorded."""
    kept = [folder for place in places for folder in sorted(place.glob("data/checkpoints/*/costs"))]
    sessions: list[dict[str, Any]] = []
    for name in dict.fromkeys(names):
        found = next(filter(None, (read_sessions(folder / name) for folder in kept)), None)
        if found is None:
            return None
        sessions += found
    hours: dict[str, float] = {}
    for one in sessions:
        hours[one["unit"]] = hours.get(one["unit"], 0.0) + one["seconds"] * one["count"] / 3600
    tokens = sum(one["target_tokens"] for one in sessions)
    seconds = sum(one["training_seconds"] for one in sessions)
    return {
        "hardware": list(dict.fromkeys(f"{one['count']} x {one['device']}" for one in sessions)),
        "hours": {unit: round(value, 4) for unit, value in hours.items()},
        "torch": list(dict.fromkeys(one["torch"] for one in sessions)),
        "target_tokens_per_second": round(tokens / seconds, 1) if seconds else None,
    }


def speed_of(root: Path, others: Sequence[Path]) -> float | None:
    """Return the target tokens/s of trainings, which may have run in other workspaces; None if unknown."""
    return (cost_of([root], [root, *others]) or {}).get("target_tokens_per_second")
