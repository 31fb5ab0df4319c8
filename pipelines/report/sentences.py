"""Sentences of the test set: translations compared with their references."""

import re
from collections.abc import Sequence
from difflib import SequenceMatcher
from statistics import fmean
from typing import Any, NamedTuple

from convs2s.score.corpus_scores import sentence_chrf
from convs2s.score.tables import spread
from pipelines.report.run import Run

EXAMPLES = 5  # of each kind
# A word, a character of a script without spaces, or a punctuation mark; each with the space before it.
PIECE = re.compile(r"\s*(?:[\u3040-\u30ff\u3400-\u9fff]|[^\W\u3040-\u30ff\u3400-\u9fff]+|\S)|\s+")
Pieces = list[tuple[str, bool]]
"""Texts, and whether the other side lacks them."""


class SentenceDiff(NamedTuple):
    """A translation and its reference, in pieces."""

    translation: Pieces
    reference: Pieces


def choose_sentences(runs: Sequence[Run]) -> dict[str, list[dict[str, Any]]]:
    """Return examples by the reason they were chosen; all runs have the same test set."""
    scores = {
        line: [sentence_chrf(run.sentences[line].translation, sentence.reference) for run in runs]
        for line, sentence in enumerate(runs[0].sentences)
        if sentence.source.strip()
    }
    chosen = {"From all over the test set": spread(list(scores), EXAMPLES)}
    if len(runs) > 1:
        by_range = sorted(scores, key=lambda line: min(scores[line]) - max(scores[line]))
        chosen["Where the runs differ most"] = by_range[:EXAMPLES]
    chosen["With the lowest chrF2"] = sorted(scores, key=lambda line: fmean(scores[line]))[:EXAMPLES]
    examples: dict[str, list[dict[str, Any]]] = {}
    for reason, lines in chosen.items():
        examples[reason] = [show_example(runs, line, scores[line]) for line in lines]
    return examples


def show_example(runs: Sequence[Run], line: int, scores: Sequence[float]) -> dict[str, Any]:
    """Return a sentence with the translation of each run, compared with its reference.

    If there is only one translation, what it lacks is marked in the reference.
    """
    source, reference, _ = runs[0].sentences[line]
    comparisons = [diff_sentences(run.sentences[line].translation, reference) for run in runs]
    return {
        "line": line + 1,
        "source": source,
        "translations": [
            (run.name, score, comparison.translation)
            for run, score, comparison in zip(runs, scores, comparisons, strict=True)
        ],
        "reference": comparisons[0].reference if len(runs) == 1 else [(reference, False)],
    }


def diff_sentences(translation: str, reference: str) -> SentenceDiff:
    """Return both texts in pieces: words that the other side lacks at this point, and words they share."""
    ours = PIECE.findall(translation)
    theirs = PIECE.findall(reference)
    matcher = SequenceMatcher(
        None, [piece.strip() for piece in ours], [piece.strip() for piece in theirs], autojunk=False
    )
    marked_ours: Pieces = []
    marked_theirs: Pieces = []
    for tag, start, end, their_start, their_end in matcher.get_opcodes():
        is_shared = tag == "equal"
        marked_ours += mark("".join(ours[start:end]), is_shared)
        marked_theirs += mark("".join(theirs[their_start:their_end]), is_shared)
    return SentenceDiff(marked_ours, marked_theirs)


def mark(text: str, is_shared: bool) -> Pieces:
    """Return the pieces of a text: shared or, except for the space before it, lacking on the other side."""
    if is_shared:
        return [(text, False)]
    words = text.lstrip()
    space = text[: len(text) - len(words)]
    return [(part, lacks) for part, lacks in ((space, False), (words, True)) if part]
