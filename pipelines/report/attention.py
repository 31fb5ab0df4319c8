"""Attention of a few sentences, as heat maps (Fig. 3)."""

from collections.abc import Sequence
from dataclasses import dataclass

from convs2s.decode.attention import Attention
from convs2s.score.pictures import LONGEST_LABEL, easy_to_read
from convs2s.score.tables import spread
from pipelines.report.run import Run

COUNT = 2  # sentences
FAINTEST = 0.01  # smaller weights are not drawn


@dataclass(frozen=True)
class Cell:
    """A square: source token `row`, target token `column`."""

    row: int
    column: int
    weight: float
    title: str


@dataclass(frozen=True)
class HeatMap:
    """The attention of a run's translation of a sentence."""

    run: str
    line: int  # of the test set, counted from 1
    source: list[str]
    target: list[str]
    cells: list[Cell]


def heat_maps(runs: Sequence[Run]) -> list[list[HeatMap]]:
    """Return, for a few sentences, the attention of each run's first seed; all have the same test set."""
    shapes = [item.weights.shape for item in runs[0].translations.attention]
    chosen = spread(easy_to_read(shapes, COUNT), COUNT)
    return [[heat_map(run, line, run.translations.attention[line]) for run in runs] for line in chosen]


def heat_map(run: Run, line: int, attention: Attention) -> HeatMap:
    """Return the heat map of one sentence."""
    cells = [
        Cell(row, column, round(float(weight), 2), f"{source} – {target}: {weight:.2f}")
        for column, (target, weights) in enumerate(zip(attention.target, attention.weights, strict=True))
        for row, (source, weight) in enumerate(zip(attention.source, weights, strict=True))
        if weight >= FAINTEST
    ]
    source, target = (
        [token[:LONGEST_LABEL] for token in side] for side in (attention.source, attention.target)
    )
    return HeatMap(run.name, line + 1, source, target, cells)
