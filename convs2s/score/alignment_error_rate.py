"""Alignment error rate (Och and Ney, 2003), for true alignments whose links are all sure."""

from collections.abc import Iterable

Links = Iterable[tuple[int, int]]


def alignment_error_rate(hypotheses: Iterable[Links], references: Iterable[Links]) -> float:
    """Return 1 - 2 |A and S| / (|A| + |S|) over all pairs: 0 if all links agree, 1 if none do.

    With sure links only, this is 1 - F1 of the links; it is 0 if neither has any.

    Args:
        hypotheses: for each pair, the links A that were found, as (source, target) positions.
        references: for each pair, the true links S.

    Raises:
        ValueError: if the two differ in their number of pairs.
    """
    common, total = 0, 0
    for found, true in zip(hypotheses, references, strict=True):
        found_links, true_links = set(found), set(true)
        common += len(found_links & true_links)
        total += len(found_links) + len(true_links)
    return 1.0 - 2.0 * common / total if total else 0.0
