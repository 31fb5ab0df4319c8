"""Sentences of the test set: translations compared with their references, and attention (Fig. 3)."""

import re
from collections.abc import Sequence
from difflib import SequenceMatcher
from itertools import groupby
from statistics import fmean
from typing import Any

from convs2s.score.corpus_scores import sentence_chrf
from convs2s.score.pictures import LONGEST_LABEL, easy_to_read
from convs2s.score.tables import spread
from pipelines.report.run import Run

EXAMPLES = 5  # of each kind
HEAT_MAPS = 2
# A word, a character of a script without spaces, or a punctuation mark; each with the space before it.
PIECE = re.compile(r"\s*(?:[\u3040-\u30ff\u3400-\u9fff]|[^\W\u3040-\u30ff\u3400-\u9fff]+|\S)|\s+")
Piece = tuple[str, bool]
"""Text, and whether the other side lacks it."""


def choose_examples(runs: Sequence[Run]) -> dict[str, list[dict[str, Any]]]:
    """Return examples by the reason they were chosen; all runs have the same test set."""
    test = runs[0].translations
    scores = {
        line: [sentence_chrf(run.translations.hypotheses[line], test.references[line]) for run in runs]
        for line, source in enumerate(test.sources) if source.strip()
    }  # fmt: skip
    chosen = {"From all over the test set": spread(list(scores), EXAMPLES)}
    if len(runs) > 1:
        by_range = sorted(scores, key=lambda line: min(scores[line]) - max(scores[line]))
        chosen["Where the runs differ most"] = by_range[:EXAMPLES]
    chosen["With the lowest chrF2"] = sorted(scores, key=lambda line: fmean(scores[line]))[:EXAMPLES]
    return {why: [show_example(runs, line, scores[line]) for line in found] for why, found in chosen.items()}


def show_example(runs: Sequence[Run], line: int, scores: Sequence[float]) -> dict[str, Any]:
    """Return a sentence with the translation of each run, compared with its reference."""
    test = runs[0].translations
    pairs = [compare(run.translations.hypotheses[line], test.references[line]) for run in runs]
    return {
        "line": line + 1,
        "source": test.sources[line],
        "translations": [
            (run.name, chrf, ours) for run, chrf, (ours, _) in zip(runs, scores, pairs, strict=True)
        ],
        "reference": pairs[0][1] if len(runs) == 1 else [(test.references[line], False)],
    }


def compare(hypothesis: str, reference: str) -> tuple[list[Piece], list[Piece]]:
    """Return both texts in pieces: words that the other side lacks at this point, and words they share."""
    sides = [PIECE.findall(text) for text in (hypothesis, reference)]
    ours, theirs = ([piece.strip() for piece in side] for side in sides)
    shared: tuple[set[int], set[int]] = set(), set()
    for block in SequenceMatcher(None, ours, theirs, autojunk=False).get_matching_blocks():
        shared[0].update(range(block.a, block.a + block.size))
        shared[1].update(range(block.b, block.b + block.size))
    first, second = (join(side, same) for side, same in zip(sides, shared, strict=True))
    return first, second


def join(pieces: Sequence[str], shared: set[int]) -> list[Piece]:
    """Join neighbors that are both shared or both not; space before unshared words is a piece of its own."""
    found: list[Piece] = []
    for alone, group in groupby(range(len(pieces)), key=lambda index: index not in shared):
        text = "".join(pieces[index] for index in group)
        words = text.lstrip() if alone else text
        space = text[: len(text) - len(words)]
        found += [part for part in ((space, False), (words, alone)) if part[0]]
    return found


def choose_heat_maps(runs: Sequence[Run]) -> list[list[dict[str, Any]]]:
    """Return, for a few sentences, the attention of each run's first seed; all have the same test set."""
    shapes = [item.weights.shape for item in runs[0].translations.attention]
    lines = spread(easy_to_read(shapes, HEAT_MAPS), HEAT_MAPS)
    return [[show_heat_map(run, line) for run in runs] for line in lines]


def show_heat_map(run: Run, line: int) -> dict[str, Any]:
    """Return the tokens of one sentence, shortened, and the attention between them."""
    one = run.translations.attention[line]
    source, target = ([token[:LONGEST_LABEL] for token in side] for side in (one.source, one.target))
    weights = one.weights.tolist()
    return {"run": run.name, "line": line + 1, "source": source, "target": target, "weights": weights}
