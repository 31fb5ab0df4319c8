"""Pairs that are probably bad translations: what a look at the corpus would show before it is trained on.

They are counted, but not removed; whether a corpus is meant to be like that, only people know.
"""

import math
import re
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from convs2s.base.files import Pair
from convs2s.base.messages import inflect
from convs2s.text.corpus.scripts import SCRIPTS, script_pattern, writer_of
from convs2s.text.headings import is_heading
from convs2s.text.words.characters import find_letter, list_words

MARKUP = re.compile(r"</?[a-z][a-z0-9]*(?:\s[^<>]*)?/?>|&(?:[A-Za-z]{2,8}|#x?[0-9A-Fa-f]{1,6});").search
"""A tag of HTML or XML, or an entity; not <foo@example.org>, or a company's symbol as in Reuters' news."""
DIGITS = re.compile(r"\d").findall
ENDINGS = {"?": 1, "？": 1, "؟": 1, "!": 2, "！": 2, ":": 3, "：": 3}
"""Last characters that a translation usually has, too, as numbers from 1."""

SAMPLED = 10_000
"""Pairs of which words are compared, spread over the corpus, at most."""
FEW_OCCURRENCES = 5
"""Words in fewer of these say nothing about a language."""
CLEAR = 4.0
"""Nats by which the words of a sentence must speak for the language of the other side."""

BLOCK = 50
"""Lines that are compared with those some lines further."""
FARTHEST = 10
"""Lines that a block is looked for away from its place."""
ALIKE, UNLIKE = 0.5, 0.35
"""A shifted block has this correlation with its translations, and this much less with what is beside it."""
CHUNK = 1 << 14  # blocks


class SuspectKind(NamedTuple):
    """A kind of suspects.

    Attributes:
        share: of the pairs, above which there is a warning.
        fault: what the pairs have, after their number.
        advice: how to remove or correct them.
    """

    share: float
    fault: str
    advice: str


KINDS = {
    "heading": SuspectKind(
        0,
        "looks like a table's heading",
        "Leave it out of both files: tail -n +2; or delete the row of the table.",
    ),
    "shifted": SuspectKind(
        0,
        "are in blocks that seem to be some lines away from their translations",
        "One of the files lacks a line, or has one too many, shortly before: compare them with paste.",
    ),
    "swapped": SuspectKind(
        0.01,
        "seem to have their sides swapped",
        "If all of a file are, exchange its source and target, or its columns, in download.train.sources.",
    ),
    "source_script": SuspectKind(
        0.01,
        "have a source without a letter of its language's script",
        "Are the languages right? To keep the others: paste SOURCE TARGET | grep -P '{}.*\\t' > pairs.tsv",
    ),
    "target_script": SuspectKind(
        0.01,
        "have a target without a letter of its language's script",
        "Are the languages right? To keep the others: paste SOURCE TARGET | grep -P '\\t.*{}' > pairs.tsv",
    ),
    "one_language": SuspectKind(
        0.01,
        "seem to have both sides in one language, such as text that was not translated",
        "Look at them, and delete those lines in both files.",
    ),
    "copies": SuspectKind(
        0.1,
        "have the same text on both sides",
        "To leave them out: paste SOURCE TARGET | awk -F '\\t' '$1 != $2' > pairs.tsv",
    ),
    "markup": SuspectKind(
        0.02,
        "have markup, such as <b> or &nbsp;",
        "The model would learn to write it. To remove tags from both files: sed -E 's/<[^<>]*>//g'",
    ),
    "repeats": SuspectKind(
        0.1,
        "repeat an earlier pair",
        "To keep only the first of equal pairs: filter.drop_repeats: true",
    ),
}
"""In the order in which a person would look for them."""


@dataclass
class Suspects:
    """The pairs of a kind.

    Attributes:
        pairs: how many there are.
        of: among how many.
        first: line of the first one, from 1; 0 if there is none.
    """

    of: int = 0
    pairs: int = 0
    first: int = 0

    def add(self, line: int, pairs: int = 1) -> None:
        """Count pairs from a line on."""
        self.pairs += pairs
        self.first = self.first or line


def find_suspects(pairs: Iterable[Pair], languages: tuple[str, str]) -> dict[str, Suspects]:
    """Return the suspects of each kind among the training pairs, of which 14 bytes each stay in memory.

    Args:
        pairs: raw text, in the order of the files.
    """
    found = {kind: Suspects() for kind in KINDS}
    has_source, has_target = map(writer_of, languages)
    own, other = (set(SCRIPTS.get(language, ())) for language in languages)
    scripts_differ = bool(own and other and own.isdisjoint(other))
    hashes = array("q")
    shapes = Shapes(), Shapes()
    sample = PairSample()
    line = 0
    for line, pair in enumerate(pairs, start=1):
        source, target = pair
        hashes.append(hash(pair))
        sample.add(line, pair)
        for side, shape in zip(pair, shapes, strict=True):
            shape.add(side)
        if line == 1 and is_heading(pair, languages):
            found["heading"].add(line)
        if source == target:
            found["copies"].add(line)
        if any(MARKUP(side) for side in pair if "<" in side or "&" in side):
            found["markup"].add(line)
        source_is_odd = not has_source(source) and find_letter(source)
        target_is_odd = not has_target(target) and find_letter(target)
        has_other = (source_is_odd and has_source(target)) or (target_is_odd and has_target(source))
        if scripts_differ and has_other:
            found["swapped"].add(line)
            continue
        if source_is_odd:
            found["source_script"].add(line)
        if target_is_odd:
            found["target_script"].add(line)
    for suspects in found.values():
        suspects.of = line
    found["repeats"].pairs = line - len(np.unique(np.frombuffer(hashes, np.int64)))
    for first in find_shifts(*shapes):
        found["shifted"].add(first, BLOCK)
    if languages[0] != languages[1]:
        swapped, found["one_language"] = compare_words(sample.pairs)
        if not scripts_differ:
            found["swapped"] = swapped
    return found


def describe_suspects(found: Mapping[str, Suspects], languages: tuple[str, str]) -> Iterator[str]:
    """Yield a warning for each kind that has more than its share: what, how many, where, what to do."""
    scripts = {"source_script": languages[0], "target_script": languages[1]}
    for name, suspects in found.items():
        kind = KINDS[name]
        if suspects.pairs > kind.share * suspects.of:
            place = f"; the first is in line {suspects.first:,} of data/raw/train" if suspects.first else ""
            advice = kind.advice
            if name in scripts:
                advice = advice.format(script_pattern(scripts[name]))
            yield f"train: {inflect(suspects.pairs, 'pair')} of {suspects.of:,} {kind.fault}{place}. {advice}"


class PairSample:
    """Pairs spread over a corpus of unknown size, with their line numbers."""

    def __init__(self) -> None:
        self.pairs: list[tuple[int, Pair]] = []
        self._stride = 1

    def add(self, line: int, pair: Pair) -> None:
        """Take every first, second, fourth, ... pair, so that at most SAMPLED are kept."""
        if (line - 1) % self._stride:
            return
        self.pairs.append((line, pair))
        if len(self.pairs) > SAMPLED:
            self._stride *= 2
            self.pairs = [(number, kept) for number, kept in self.pairs if (number - 1) % self._stride == 0]


def compare_words(sample: Sequence[tuple[int, Pair]]) -> tuple[Suspects, Suspects]:
    """Return the pairs of a sample with their sides swapped, and those with both sides in one language.

    A word speaks for the side on which it is more common. So pairs that are unlike most others are found, in
    any two languages; but if most pairs are swapped, those are taken for the right ones.
    """
    words = [tuple(set(list_words(side.lower())) for side in pair) for _, pair in sample]
    of_source = Counter(word for source, _ in words for word in source)
    of_target = Counter(word for _, target in words for word in target)
    leaning = {
        word: math.log((of_source[word] + 0.5) / (of_target[word] + 0.5))
        for word in of_source | of_target
        if of_source[word] + of_target[word] >= FEW_OCCURRENCES
    }
    in_one_language = Suspects(of=len(sample))
    swapped = Suspects(of=len(sample))
    for (line, pair), words_of_sides in zip(sample, words, strict=True):
        source, target = (sum(leaning.get(word, 0.0) for word in side) for side in words_of_sides)
        if pair[0] == pair[1] or min(abs(source), abs(target)) < CLEAR:
            continue
        if source < 0 < target:
            swapped.add(line)
        elif source * target > 0:
            in_one_language.add(line)
    return swapped, in_one_language


class Shapes:
    """What lines have in common with their translations, in numbers: length, digits, and how they end."""

    def __init__(self) -> None:
        self._lengths = array("B")
        self._digits = array("B")
        self._endings = array("B")

    def add(self, line: str) -> None:
        """Note a line."""
        self._lengths.append(min(round(20 * math.log1p(len(line))), 255))
        self._digits.append(min(len(DIGITS(line)), 255))
        self._endings.append(ENDINGS.get(line[-1:], 0))

    def __len__(self) -> int:
        return len(self._lengths)

    def columns(self, start: int, stop: int) -> NDArray[np.float32]:
        """Return the numbers of some lines: (columns, lines). Beyond the ends they are those of the ends."""
        lines = np.arange(start, stop).clip(0, len(self) - 1)
        lengths, digits, endings = (
            np.frombuffer(numbers, np.uint8)[lines]
            for numbers in (self._lengths, self._digits, self._endings)
        )
        of_ending = [endings == number for number in sorted({*ENDINGS.values()})]
        return np.stack([lengths, digits, *of_ending]).astype(np.float32)


def find_shifts(source: Shapes, target: Shapes) -> list[int]:
    """Return the first line, from 1, of each block whose translations are some lines away.

    A block counts if the one before or after it is shifted by as many lines.
    """
    shifts: list[int] = []
    blocks = len(source) // BLOCK
    for start in range(0, blocks, CHUNK):
        shifts += measure_shifts(source, target, start, min(start + CHUNK, blocks))
    return [
        block * BLOCK + 1
        for block, shift in enumerate(shifts)
        if shift and shift in (*shifts[max(block - 1, 0) : block], *shifts[block + 1 : block + 2])
    ]


def measure_shifts(source: Shapes, target: Shapes, first: int, stop: int) -> list[int]:
    """Return of each of these blocks by how many lines its translations are late; 0 if they are in place."""
    start, end = first * BLOCK, stop * BLOCK
    own = standardize(source.columns(start, end))
    around = target.columns(start - FARTHEST, end + FARTHEST)
    varying = own.any(axis=-1).sum(axis=0).clip(1)
    correlations = np.stack([
        (own * standardize(around[:, offset : offset + end - start])).sum(axis=(0, -1)) / varying
        for offset in range(2 * FARTHEST + 1)
    ])  # (offsets, blocks)  # fmt: skip
    best = correlations.argmax(axis=0)
    highest, in_place = correlations.max(axis=0), correlations[FARTHEST]
    is_shifted = (highest >= ALIKE) & (highest - in_place >= UNLIKE)
    return list(np.where(is_shifted, best - FARTHEST, 0).tolist())


def standardize(columns: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return columns in blocks (columns, blocks, lines), each with mean 0 and norm 1; 0 if it is constant."""
    cut = columns.reshape(len(columns), -1, BLOCK)
    centered = cut - cut.mean(axis=-1, keepdims=True)
    norms = np.linalg.norm(centered, axis=-1, keepdims=True)
    standardized: NDArray[np.float32] = np.zeros_like(centered)
    np.divide(centered, norms, out=standardized, where=norms > 1e-3)
    return standardized
