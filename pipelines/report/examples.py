"""Sentences of the test set worth reading, with the translations of all runs that share it."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from convs2s.score.corpus_scores import sentence_chrf
from convs2s.score.tables import spread
from pipelines.report.differences import Piece, compared
from pipelines.report.run import Run

COUNT = 5  # of each kind


@dataclass(frozen=True)
class Hypothesis:
    """A run's translation of a sentence."""

    run: str
    chrf: float
    text: list[Piece]
    reference: list[Piece]


@dataclass(frozen=True)
class Example:
    """A sentence."""

    line: int  # counted from 1
    source: str
    reference: str
    hypotheses: list[Hypothesis]


def choose_examples(runs: Sequence[Run]) -> dict[str, list[Example]]:
    """Return examples by the reason they were chosen; all runs have the same test set."""
    test = runs[0].translations
    lines = [line for line, source in enumerate(test.sources) if source.strip()]
    scores = {
        line: [sentence_chrf(run.translations.hypotheses[line], test.references[line]) for run in runs]
        for line in lines
    }
    chosen = {"From all over the test set": spread(lines, COUNT)}
    if len(runs) > 1:
        by_range = sorted(lines, key=lambda line: min(scores[line]) - max(scores[line]))
        chosen["Where the runs differ most"] = by_range[:COUNT]
    chosen["With the lowest chrF2"] = sorted(lines, key=lambda line: fmean(scores[line]))[:COUNT]
    return {why: [example(runs, line, scores[line]) for line in found] for why, found in chosen.items()}


def example(runs: Sequence[Run], line: int, scores: Sequence[float]) -> Example:
    """Return a sentence with the translation of each run, compared with its reference."""
    reference, hypotheses = runs[0].translations.references[line], list[Hypothesis]()
    for run, chrf in zip(runs, scores, strict=True):
        pieces = compared(run.translations.hypotheses[line], reference)
        hypotheses.append(Hypothesis(run.name, chrf, *pieces))
    return Example(line + 1, runs[0].translations.sources[line], reference, hypotheses)
