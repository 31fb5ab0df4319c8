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
    held_out_pairs = {pair for pairs in splits.values() for pair in pairs}
    held_out_sources = {source for source, _ in held_out_pairs}
    trained_pairs, trained_sources = set[Pair](), set[str]()
    sizes, copied, swapped = Counter[str](), 0, Counter[str]()
    shares = [letter_shares(language) for language in languages]
    for split, pairs in {"train": train, **splits}.items():
        for block in blocks(pairs):
            sizes[split] += len(block)
            swapped[split] += len(block) * looks_swapped(block, shares)
            if split == "train":
                copied += sum(source == target for source, target in block)
                trained_pairs |= held_out_pairs.intersection(block)
                trained_sources |= held_out_sources.intersection(source for source, _ in block)
    overlap = {
        split: {
            "pairs": sum(pair in trained_pairs for pair in pairs),
            "sources": sum(source in trained_sources for source, _ in pairs),
            "of": len(pairs),
        }
        for split, pairs in splits.items()
    }
    warnings = [
        f"{split}: {inflect(count, 'pair')} of {sizes[split]:,} look swapped, from {name(languages[1])} to "
        f"{name(languages[0])}"
        for split, count in swapped.items()
        if count > FEW * sizes[split]
    ]
    if copied > COPIED * sizes["train"]:
        warnings.append(
            f"train: {inflect(copied, 'pair')} of {sizes['train']:,} have the same text on both sides"
        )
    warnings += [
        f"{split}: {inflect(counts['pairs'], 'pair')} of {counts['of']:,} are also in the training data"
        for split, counts in overlap.items()
        if counts["pairs"] > FEW * counts["of"]
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
    test, warnings = report["overlap"]["test"], "; ".join(report["warnings"])
    shared = f"{test['pairs']:,} of {test['of']:,}, and {test['sources']:,} of their source sentences"
    rows = {"test pairs in it": shared}
    if "translated" in report:
        rows["translated by models"] = f"{report['translated']:,} of the pairs"
    return rows | ({"warnings": warnings} if warnings else {})


def blocks(pairs: Iterable[Pair]) -> Iterator[list[Pair]]:
    """Yield the pairs in lists of BLOCK."""
    rest = iter(pairs)
    while block := list(itertools.islice(rest, BLOCK)):
        yield block


def letter_shares(language: str) -> dict[str, float]:
    """Return about how frequent each letter is in a language, by its rank; empty for an unknown language."""
    title = ALIASES.get(name(language), name(language))
    weights = {
        letter: 1 / (rank + 3)
        for key, letters in FREQUENCIES.items()
        if key.rstrip("—") == title  # Japanese has several lists
        for rank, letter in enumerate(letters)
    }
    total = sum(weights.values())
    return {letter: weight / total for letter, weight in weights.items()}


def looks_swapped(block: Sequence[Pair], shares: Sequence[Mapping[str, float]]) -> bool:
    """Return whether a block's sides surely fit the letters of the two languages better when swapped."""
    sample = block[:: max(1, len(block) // 100)]
    source, target = (
        {letter: count for letter, count in Counter("".join(side).lower()).items() if letter.isalpha()}
        for side in zip(*sample, strict=True)
    )
    if not all(shares) or min(sum(source.values()), sum(target.values())) < MIN_LETTERS:
        return False
    return fit(source, shares[1], shares[0]) + fit(target, shares[0], shares[1]) > SURE


def fit(letters: Mapping[str, int], shares: Mapping[str, float], rival_shares: Mapping[str, float]) -> float:
    """Return by how many nats per letter a text fits one distribution of letters better than another."""
    total = sum(
        count * math.log(shares.get(letter, UNSEEN) / rival_shares.get(letter, UNSEEN))
        for letter, count in letters.items()
    )
    return total / sum(letters.values())
