"""Mistakes in a corpus that no reader of files would notice, as all of it is valid text.

Test or validation sentences in the training data, sides that are copies of each other, and sides that are
swapped: in a split, or in a part of the training data, as when one of several sources has them the other way.
"""

import itertools
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from charset_normalizer.constant import FREQUENCIES

from convs2s.base.messages import inflect
from convs2s.text.languages import name

Pair = tuple[str, str]
Shares = Mapping[str, float]

BLOCK = 1000
"""Pairs whose sides are judged together; letters are counted in a hundred of them."""
MIN_LETTERS = 500
"""Letters of a side below which a block is not judged."""
SURE = 0.05
"""Nats per letter by which swapped sides must fit better. On messages in 38 languages, the right sides
fitted better for all 703 pairs of languages, by 0.005 (Danish and Norwegian), 0.03, 0.09 and more."""
UNSEEN = 1e-3
"""Share of a letter that is not among the most frequent of a language."""
ALIASES = {"Persian": "Farsi", "Slovenian": "Slovene", "Norwegian Bokmål": "Norwegian"}
FEW, COPIED = 0.01, 0.1
"""Shares of a split above which there is a warning; some copies, as of names, are usual."""


def find_mistakes(
    train: Iterable[Pair], held_out: Mapping[str, Sequence[Pair]], languages: tuple[str, str]
) -> dict[str, Any]:
    """Return the overlap of held-out splits with the training data, and a list of warnings.

    Memory is needed for the held-out pairs only; of these, sentences count as equal if all characters are.

    Returns:
        `overlap`: for each split, its number of pairs that are also training pairs, of its source sentences
        that are also training sources, and of its pairs; and `warnings`, as sentences.
    """
    splits = {split: pairs for split, pairs in held_out.items() if pairs}
    known = {pair for pairs in splits.values() for pair in pairs}
    sources = {source for source, _ in known}
    seen, seen_sources, read, copied, swapped = set[Pair](), set[str](), 0, 0, 0
    totals = Counter[str](), Counter[str]()
    tables = usual_letters(languages[0]), usual_letters(languages[1])
    for block in blocks(train):
        read += len(block)
        copied += sum(source == target for source, target in block)
        seen |= known.intersection(block)
        seen_sources |= sources.intersection(source for source, _ in block)
        sides = count_letters(block)
        swapped += len(block) * looks_swapped(sides, tables)
        for total, side in zip(totals, sides, strict=True):
            total.update(side)
    parts = {"train": (swapped, read)}
    if not all(tables):  # Unknown letters: what is the source is what training takes for it.
        tables = shares(totals[0]), shares(totals[1])
    overlap = {}
    for split, pairs in splits.items():
        found = sum(len(block) for block in blocks(pairs) if looks_swapped(count_letters(block), tables))
        parts[split] = found, len(pairs)
        overlap[split] = {
            "pairs": sum(pair in seen for pair in pairs),
            "sources": sum(source in seen_sources for source, _ in pairs),
            "of": len(pairs),
        }
    warnings = [
        f"{split}: {inflect(found, 'pair')} of {of:,} look swapped, from {name(languages[1])} to "
        f"{name(languages[0])}"
        for split, (found, of) in parts.items()
        if found > FEW * of
    ]
    if copied > COPIED * read:
        warnings.append(f"train: {inflect(copied, 'pair')} of {read:,} have the same text on both sides")
    warnings += [
        f"{split}: {inflect(one['pairs'], 'pair')} of {one['of']:,} are also in the training data"
        for split, one in overlap.items()
        if one["pairs"] > FEW * one["of"]
    ]
    return {"overlap": overlap, "warnings": warnings}


def require_new(overlap: Mapping[str, Mapping[str, int]], limit: float | None) -> None:
    """Raise a ValueError if more than this share of a split's pairs are training pairs."""
    for split, found in overlap.items():
        if limit is not None and found["pairs"] > limit * found["of"]:
            raise ValueError(
                f"download.{split}: expected at most {limit:.2%} of its pairs in the training data "
                f"(filter.max_overlap), found {found['pairs']:,} of {found['of']:,}, and "
                f"{found['sources']:,} of its source sentences. Scores on what a model was trained on say "
                "nothing: remove these pairs from download.train, or, if they are meant to be there, raise "
                "the limit."
            )


def describe_mistakes(report: Mapping[str, Any]) -> dict[str, str]:
    """Return the rows of a model card: overlap with the test set, pairs that models translated, warnings."""
    test, warnings = report["overlap"]["test"], "; ".join(report["warnings"])
    found = f"{test['pairs']:,} of {test['of']:,}, and {test['sources']:,} of their source sentences"
    rows = {"test pairs in it": found}
    if "translated" in report:
        rows["translated by models"] = f"{report['translated']:,} of the pairs"
    return rows | ({"warnings": warnings} if warnings else {})


def blocks(pairs: Iterable[Pair]) -> Iterator[list[Pair]]:
    """Yield the pairs in lists of BLOCK."""
    rest = iter(pairs)
    while block := list(itertools.islice(rest, BLOCK)):
        yield block


def count_letters(block: Sequence[Pair]) -> tuple[Counter[str], Counter[str]]:
    """Return how often each letter occurs on the two sides, in up to a hundred or so of the pairs."""
    sample = block[:: max(1, len(block) // 100)]
    source, target = (Counter("".join(side).lower()) for side in zip(*sample, strict=True))
    return Counter(keep_letters(source)), Counter(keep_letters(target))


def keep_letters(counts: Mapping[str, int]) -> dict[str, int]:
    """Return the counts of letters, without those of other characters."""
    return {character: count for character, count in counts.items() if character.isalpha()}


def usual_letters(language: str) -> dict[str, float]:
    """Return about how frequent each letter is in a language, by its rank; empty for an unknown language."""
    title = ALIASES.get(name(language), name(language))
    return shares({
        letter: 1 / (rank + 3)
        for key, letters in FREQUENCIES.items()
        if key.rstrip("—") == title  # Japanese has several lists
        for rank, letter in enumerate(letters)
    })  # fmt: skip


def shares(weights: Mapping[str, float]) -> dict[str, float]:
    """Return weights divided by their sum."""
    total = sum(weights.values())
    return {letter: weight / total for letter, weight in weights.items()}


def looks_swapped(sides: Sequence[Mapping[str, int]], tables: Sequence[Shares]) -> bool:
    """Return whether a block's sides surely fit the letters of the two languages better when swapped."""
    if not all(tables) or min(sum(side.values()) for side in sides) < MIN_LETTERS:
        return False
    source, target = tables
    return fit(sides[0], target, source) + fit(sides[1], source, target) > SURE


def fit(letters: Mapping[str, int], one: Shares, other: Shares) -> float:
    """Return by how many nats per letter a text fits one distribution of letters better than another."""
    total = sum(
        count * math.log(one.get(letter, UNSEEN) / other.get(letter, UNSEEN))
        for letter, count in letters.items()
    )
    return total / sum(letters.values())
