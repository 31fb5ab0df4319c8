"""Differences: parameters between runs, words between a translation and its reference."""

import json
import re
from collections.abc import Sequence
from difflib import SequenceMatcher
from itertools import groupby
from typing import Any

from pipelines.report.run import Run

# A word, a character of a script without spaces, or a punctuation mark; each with the space before it.
PIECE = re.compile(r"\s*(?:[\u3040-\u30ff\u3400-\u9fff]|[^\W\u3040-\u30ff\u3400-\u9fff]+|\S)|\s+")
Piece = tuple[str, bool]
"""Text, and whether the other side lacks it."""


def differing(runs: Sequence[Run]) -> list[str]:
    """Return the parameters that differ between runs, in the order of params.yaml."""
    names = dict.fromkeys(name for run in runs for name in run.params)
    return [name for name in names if len({value(run, name) for run in runs}) > 1]


def value(run: Run, name: str) -> str:
    """Return a parameter's value as in params.yaml, on one line; a dash if an older run lacks it."""
    if name not in run.params:
        return "–"
    found = run.params[name]
    return found if isinstance(found, str) else compact(found)


def compact(found: Any) -> str:
    """Return a value as JSON."""
    return json.dumps(found, ensure_ascii=False, default=str)


def compared(hypothesis: str, reference: str) -> tuple[list[Piece], list[Piece]]:
    """Return both texts in pieces: words that the other side lacks at this point, and words they share."""
    sides = [PIECE.findall(text) for text in (hypothesis, reference)]
    ours, theirs = ([piece.strip() for piece in side] for side in sides)
    shared: tuple[set[int], set[int]] = set(), set()
    for block in SequenceMatcher(None, ours, theirs, autojunk=False).get_matching_blocks():
        shared[0].update(range(block.a, block.a + block.size))
        shared[1].update(range(block.b, block.b + block.size))
    first, second = (joined(side, same) for side, same in zip(sides, shared, strict=True))
    return first, second


def joined(pieces: Sequence[str], shared: set[int]) -> list[Piece]:
    """Join neighbors that are both shared or both not; space before unshared words is a piece of its own."""
    found: list[Piece] = []
    for alone, group in groupby(range(len(pieces)), key=lambda index: index not in shared):
        text = "".join(pieces[index] for index in group)
        words = text.lstrip() if alone else text
        space = text[: len(text) - len(words)]
        found += [part for part in ((space, False), (words, alone)) if part[0]]
    return found
