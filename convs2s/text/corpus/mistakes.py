"""Mistakes in a corpus that no reader of files would notice, as all of it is valid text.

Test or validation sentences in the training data.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from convs2s.base.files import Pair
from convs2s.base.messages import inflect

FEW_SHARED = 0.01
"""If more than this share of a split's pairs are also in the training data, there is a warning."""


def find_mistakes(train: Iterable[Pair], held_out: Mapping[str, Sequence[Pair]]) -> dict[str, Any]:
    """Return the overlap of held-out splits with the training data, and a list of warnings.

    Memory is needed for the held-out pairs only; of these, sentences count as equal if all characters are.

    Returns:
        `overlap`: for each split, its number of pairs that are also training pairs, of its source sentences
        that are also training sources, and of its pairs; and `warnings`, as sentences.
    """
    held_out_pairs = {pair for pairs in held_out.values() for pair in pairs}
    held_out_sources = {source for source, _ in held_out_pairs}
    trained_pairs = set[Pair]()
    trained_sources = set[str]()
    for source, target in train:
        if source in held_out_sources:
            trained_sources.add(source)
            if (source, target) in held_out_pairs:
                trained_pairs.add((source, target))
    overlap = {
        split: {
            "pairs": sum(pair in trained_pairs for pair in pairs),
            "sources": sum(source in trained_sources for source, _ in pairs),
            "of": len(pairs),
        }
        for split, pairs in held_out.items()
        if pairs
    }
    warnings = [
        f"{split}: {inflect(counts['pairs'], 'pair')} of {counts['of']:,} are also in the training data"
        for split, counts in overlap.items()
        if counts["pairs"] > FEW_SHARED * counts["of"]
    ]
    return {"overlap": overlap, "warnings": warnings}


def require_new(overlap: Mapping[str, Mapping[str, int]], limit: float | None) -> None:
    """Raise a ValueError if more than this share of a split's pairs are training pairs."""
    for split, counts in overlap.items():
        if limit is not None and counts["pairs"] > limit * counts["of"]:
            raise ValueError(
                f"download.{split}: expected at most {limit:.2%} of its pairs in the training data "
                f"(filter.max_overlap), found {counts['pairs']:,} of {counts['of']:,}, and "
                f"{counts['sources']:,} of its source sentences. Scores on what a model was trained on say "
                "nothing: remove these pairs from download.train, or, if they are meant to be there, raise "
                "the limit."
            )


def describe_mistakes(report: Mapping[str, Any]) -> dict[str, str]:
    """Return the rows of a model card: overlap with the test set, pairs that models translated, warnings."""
    test = report["overlap"]["test"]
    shared = f"{test['pairs']:,} of {test['of']:,}, and {test['sources']:,} of their source sentences"
    rows = {"test pairs in it": shared}
    if "translated" in report:
        rows["translated by models"] = f"{report['translated']:,} of the pairs"
    if report["warnings"]:
        rows["warnings"] = "; ".join(report["warnings"])
    return rows
