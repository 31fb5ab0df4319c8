"""Cells of the page's tables: figures, and what they rest on."""

import json
from collections.abc import Sequence
from typing import Literal

from pipelines.results.markdown import Marks, code
from pipelines.results.records import Cost, Record, RunRecord

NOT_MEASURED = "not measured"
LONGEST = 60
"""Characters of a changed value that are shown; the record has all."""


class Grounds:
    """What results rest on; marks for their signatures are counted over the whole page."""

    def __init__(self) -> None:
        self.signatures = Marks("S")

    def cells(self, name: str, record: Record, scores: Sequence[str]) -> list[str]:
        """Return signature, hardware, time and speed of training, and commit, which leads to the record."""
        used = dict.fromkeys(record.signatures[score] for score in scores if score in record.signatures)
        marks = ", ".join(self.signatures.mark(text) for text in used)
        link = f"[{code(record.commit[:9])}](../experiments/records/{name}.json)"
        return [marks, *cost_cells(record.cost), link]


def figure(value: float) -> str:
    """Return a figure with two decimals."""
    return f"{value:,.2f}"


def cost_cells(cost: Cost | None) -> list[str]:
    """Return hardware, and time with the speed if that is known."""
    if cost is None:
        return [NOT_MEASURED, NOT_MEASURED]
    hours = " and ".join(f"{figure(value)} {unit}-hours" for unit, value in cost.hours.items())
    speed = cost.target_tokens_per_second
    return [", ".join(cost.hardware), hours + ("" if speed is None else f", {speed:,.0f} target tokens/s")]


def score_cell(name: str, record: RunRecord, of: Literal["mean", "best", "ensemble"], score: str) -> str:
    """Return a score of a run, with its deviation and how many models it is of.

    Raises:
        ValueError: if the record has no such score.
    """
    metrics = record.metrics
    if missing := [s for s, found in metrics.seeds.items() if score not in found]:
        raise ValueError(
            f"experiments/records/{name}.json: metrics.seeds.{missing[0]}: found no score {score}, only "
            f"{', '.join(metrics.seeds[missing[0]])}. Wanted it for its row: run stage evaluate again, "
            "then record."
        )
    count = len(metrics.seeds)
    models = f"{count} seed{'s' if count > 1 else ''}"
    match of:
        case "mean":
            spread = f" ± {figure(metrics.std[score])}" if metrics.std else ""
            return f"{figure(metrics.mean[score])}{spread} ({models})"
        case "best":
            return f"{figure(max(scores[score] for scores in metrics.seeds.values()))} (best of {models})"
        case "ensemble":
            assert metrics.ensemble is not None, "asked for where there is one"
            return f"{figure(metrics.ensemble[score])} ({count} models)"


def with_changes(record: Record) -> str:
    """Return what a record has otherwise than its preset, to stand behind its name; nothing if nothing."""
    shown = {key: json.dumps(value, ensure_ascii=False) for key, value in record.changes.items()}
    told = [code(f"{key}: {text if len(text) <= LONGEST else '...'}") for key, text in shown.items()]
    return f" with {', '.join(told)}" if told else ""
