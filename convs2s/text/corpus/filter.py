"""Filter training pairs (§4.1, T27 to T29), and report what each rule removed."""

import hashlib
import math
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from convs2s.base.files import Pair, PairWriter
from convs2s.base.messages import inflect

EMPTY, LONG, RATIO, REPEAT = "empty side", "too long", "ratio", "repeat"
LENGTHS = "source_read", "target_read", "source_kept", "target_kept"
BIN_WORDS = 5
BINS = 41
"""Histograms of lengths have bins of BIN_WORDS words; the last, from 200 words, is open."""
SAMPLE_PAIRS = 5  # per rule
LONGEST_SAMPLE = 300  # characters per side


def count_words(line: str) -> int:
    """Return the number of words in a tokenized line."""
    return len(line.split())


def count_characters(line: str) -> int:
    """Return the number of characters in a line, without spaces."""
    return len("".join(line.split()))


def characters_per_character(pairs: Iterable[Pair]) -> float:
    """Return the number of source characters per target character, over all pairs without an empty side."""
    source_total = target_total = 0
    for source, target in pairs:
        source_characters = count_characters(source)
        target_characters = count_characters(target)
        if source_characters and target_characters:
            source_total += source_characters
            target_total += target_characters
    return source_total / target_total if target_total else 1.0


@dataclass
class PairFilter:
    """Keeps the pairs that no rule removes; a removed pair counts for the first rule that applies.

    Attributes:
        max_words: limit for the longer side, in words; None for no limit.
        max_ratio: limit for longer side / shorter side, in either direction (T28); None for no limit.
        drop_empty: whether to remove pairs with an empty side.
        repeated: hashes, from `repeats`, of the pairs that occur more than once, of which the first is kept;
            None keeps them all, as the paper does (T29).
        corpus_ratio: None for a ratio in words, as in the paper; for one in characters, that of the corpus by
            `characters_per_character`, to which it is relative.
    """

    max_words: int | None
    max_ratio: float | None
    drop_empty: bool
    repeated: set[int] | None
    corpus_ratio: float | None = None
    read: int = 0
    kept: int = 0
    removed: dict[str, int] = field(default_factory=lambda: dict.fromkeys((EMPTY, LONG, RATIO, REPEAT), 0))
    _lengths: dict[str, list[int]] = field(default_factory=lambda: {name: [0] * BINS for name in LENGTHS})
    _samples: dict[str, dict[int, dict[str, Any]]] = field(default_factory=lambda: defaultdict(dict))
    _seen: set[int] = field(default_factory=set)

    def keep(self, pairs: Iterable[Pair]) -> Iterator[Pair]:
        """Yield the pairs to keep, and count all pairs."""
        for pair in pairs:
            source, target = pair
            source_words = count_words(source)
            target_words = count_words(target)
            self.read += 1
            self._count_lengths("read", source_words, target_words)
            rule = self._rule(pair, source_words, target_words)
            if rule is None:
                self.kept += 1
                self._count_lengths("kept", source_words, target_words)
                yield pair
                continue
            self.removed[rule] += 1
            row = {
                "rule": rule,
                "source": source[:LONGEST_SAMPLE],
                "target": target[:LONGEST_SAMPLE],
                "source_words": source_words,
                "target_words": target_words,
            }
            # The pairs with the smallest hashes are a random sample, the same on every run.
            sample = self._samples[rule]
            sample.setdefault(pair_hash(pair), row)
            if len(sample) > SAMPLE_PAIRS:
                del sample[max(sample)]

    def _count_lengths(self, which: str, source_words: int, target_words: int) -> None:
        """Count a pair in the histograms of what was read, or kept."""
        self._lengths[f"source_{which}"][min(source_words // BIN_WORDS, BINS - 1)] += 1
        self._lengths[f"target_{which}"][min(target_words // BIN_WORDS, BINS - 1)] += 1

    def _rule(self, pair: Pair, source_words: int, target_words: int) -> str | None:
        """Return the first rule that removes a pair with these numbers of words; None if no rule does."""
        shorter, longer = sorted((source_words, target_words))
        if self.drop_empty and shorter == 0:
            return EMPTY
        if self.max_words is not None and longer > self.max_words:
            return LONG
        has_words = longer > 0
        if (
            self.max_ratio is not None
            and has_words
            and self._ratio(pair, source_words, target_words) > self.max_ratio
        ):
            return RATIO
        if self.repeated:
            number = pair_hash(pair)
            if number in self._seen:
                return REPEAT
            if number in self.repeated:
                self._seen.add(number)
        return None

    def _ratio(self, pair: Pair, source_words: int, target_words: int) -> float:
        """Return longer side / shorter side of a pair with these numbers of words."""
        source_length: float = source_words
        target_length: float = target_words
        if self.corpus_ratio is not None:
            source, target = pair
            source_length = count_characters(source)
            target_length = count_characters(target) * self.corpus_ratio
        shorter, longer = sorted((source_length, target_length))
        # Divide rather than multiply: 115 / 100 is exactly the float that "1.15" is parsed as.
        return longer / shorter if shorter else math.inf

    def require_some(self, where: Path) -> None:
        """Raise ValueError if no pair from `where` was kept."""
        if self.kept == 0:
            rules = ", ".join(f"{rule} {count:,}" for rule, count in self.removed.items())
            raise ValueError(
                f"{where}: none of {inflect(self.read, 'pair')} is kept (removed: {rules}). Expected at "
                "least one: check the pairs, or loosen filter.* in params.yaml."
            )

    def removed_rows(self) -> list[dict[str, Any]]:
        """Return a few of the pairs that each rule removed, with sides cut after 300 characters."""
        return [row for sample in self._samples.values() for _, row in sorted(sample.items())]

    def rules_table(self) -> pd.DataFrame:
        """Return a row for each rule, in the order they are applied: rule, limit, removed pairs, share."""
        unit = "" if self.corpus_ratio is None else " in characters"
        limits = {
            EMPTY: "on" if self.drop_empty else "off",
            LONG: "off" if self.max_words is None else inflect(self.max_words, "word"),
            RATIO: "off" if self.max_ratio is None else f"{self.max_ratio}{unit}",
            REPEAT: "off" if self.repeated is None else "on",
        }
        table = pd.DataFrame({"rule": list(limits), "limit": list(limits.values())})
        table["removed"] = list(self.removed.values())
        table["share"] = (table["removed"] / max(self.read, 1)).round(6)
        return table

    def lengths_table(self) -> pd.DataFrame:
        """Return a row for each bin: its lower bound in words, then the sentences read and kept, per side."""
        return pd.DataFrame({"words": [number * BIN_WORDS for number in range(BINS)]} | self._lengths)

    def report(self) -> dict[str, Any]:
        """Return the numbers of pairs read, kept and removed."""
        removed = {rule.replace(" ", "_"): count for rule, count in self.removed.items()}
        return {"pairs_read": self.read, "pairs_kept": self.kept, "removed": removed}


def write_splits(
    folder: Path, kept: Iterable[Pair], given_valid: Iterable[Pair], every: int | None
) -> dict[str, dict[str, int]]:
    """Write training pairs to folder/train and validation pairs to folder/valid, as a stream.

    Args:
        every: if N, the pairs kept with number N, 2N, 3N ... go to validation (T29); if None, all pairs of
            `given_valid` do.

    Returns:
        For each split, the number of pairs and the number of words on each side.
    """
    counts = {split: {"pairs": 0, "source_words": 0, "target_words": 0} for split in ("train", "valid")}
    with PairWriter(folder / "train") as train, PairWriter(folder / "valid") as valid:
        writers = {"train": train, "valid": valid}

        def write(split: str, pair: Pair) -> None:
            """Write a pair to a split, and count it and its words."""
            source, target = pair
            writers[split].write(source, target)
            counts[split]["pairs"] += 1
            counts[split]["source_words"] += count_words(source)
            counts[split]["target_words"] += count_words(target)

        for number, pair in enumerate(kept, start=1):
            write("valid" if every and number % every == 0 else "train", pair)
        if every is None:
            for pair in given_valid:
                write("valid", pair)
    return counts


def require_validation(counts: dict[str, dict[str, int]], every: int | None) -> None:
    """Raise ValueError if there are no validation pairs, judging by the result of `write_splits`."""
    if counts["valid"]["pairs"] == 0:
        raise ValueError(
            f"no validation pairs: filter.valid_every is {'null' if every is None else every}, and the filter"
            f" keeps {inflect(counts['train']['pairs'], 'pair')}. Expected pairs in download.valid or, with "
            "none there, a valid_every in params.yaml of at most the number of pairs kept."
        )


def pair_hash(pair: Pair) -> int:
    """Return 64 bits of a pair, the same on every machine.

    Among 40 million pairs, the probability that any two different ones have the same hash is 4 in 100,000.
    """
    source, target = pair
    text = f"{source}\t{target}".encode()
    return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "little")


def repeats(pairs: Iterable[Pair]) -> set[int]:
    """Return the hashes of the pairs that occur more than once; 8 bytes per pair are in memory."""
    hashes = np.fromiter(map(pair_hash, pairs), np.uint64)
    hashes.sort()  # in place
    return set(hashes[1:][hashes[1:] == hashes[:-1]].tolist())
