"""The generated English-German corpus: any number of pairs with their true word alignment.

Pair i depends only on the seed, the part and i, so a smaller corpus is the beginning of a larger one. A hash
of a sentence's English side decides which part it may occur in, whatever the seed: no test sentence is ever
trained on.
"""

import hashlib
import zlib
from collections.abc import Iterable, Iterator
from random import Random
from typing import Literal, NamedTuple

from convs2s.english_german_grammar.drawing import Bits, below
from convs2s.english_german_grammar.phrases import Phrase, text_of
from convs2s.english_german_grammar.sentences import sentence

CorpusPart = Literal["train", "valid", "test"]
HELD_OUT = {0: "valid", 1: "test"}
"""Of 50 buckets of sentences, those kept out of training."""
BLOCK = 1024
"""Pairs that share a generator; seeding a generator per pair would take a third of the time."""
LONG = 176
"""The shortest length, in words, beyond the paper's limit of 175 (§4.1.1)."""
RATIO = 1.5
"""Length ratio, in tokens, beyond which the paper's filter drops a pair (§4.1.1)."""


class GeneratedPair(NamedTuple):
    """A sentence in both languages, as raw text."""

    source: str
    """English."""
    target: str
    """German."""
    alignment: tuple[tuple[int, int], ...]
    """Sorted links of (source, target) indices of the Moses tokenizer's tokens."""


class Drawn(NamedTuple):
    """A pair and its numbers of tokens, English first."""

    pair: GeneratedPair
    tokens: tuple[int, int]


def part_of(source: str) -> str:
    """Return the part that an English sentence belongs to: 2 % valid, 2 % test, else train."""
    return HELD_OUT.get(zlib.crc32(source.encode()) % 50, "train")


def generate(pairs: int, seed: int, noise: float, part: CorpusPart) -> Iterator[GeneratedPair]:
    """Yield pairs from the built-in grammar, in constant memory.

    Args:
        pairs: number of pairs.
        seed: a different seed gives a different corpus; parts never overlap, even between seeds.
        noise: share of pairs in `train` that are corrupted: too long, mismatched in length or half empty.
        part: the part to draw sentences from.

    Raises:
        ValueError: if `pairs` is negative, `noise` is not a share, or `part` is unknown.
    """
    if pairs < 0:
        raise ValueError(
            f"pairs: found {pairs}, wanted a number of sentence pairs from 0 up. Check params.yaml."
        )
    if not 0 <= noise <= 1:
        raise ValueError(
            f"noise: found {noise}, wanted the share of bad pairs, from 0 to 1. Check params.yaml."
        )
    if part not in {"train", "valid", "test"}:
        raise ValueError(f"part: found {part!r}, wanted train, valid or test.")
    return stream(pairs, seed, noise if part == "train" else 0.0, part)


def stream(pairs: int, seed: int, noise: float, part: str) -> Iterator[GeneratedPair]:
    """Yield the pairs block by block."""
    for start in range(0, pairs, BLOCK):
        bits = generator(seed, part, start).getrandbits
        spoiling = generator(seed, part, start, "noise")
        for index in range(start, min(start + BLOCK, pairs)):
            drawn = draw_pair(bits, part)
            if spoiling.random() < noise:
                yield spoil(drawn, generator(seed, part, index, "spoil").getrandbits, part)
            else:
                yield drawn.pair


def generator(*key: object) -> Random:
    """Return a random generator seeded from a key, the same on every machine."""
    return Random(int.from_bytes(hashlib.sha256(repr(key).encode()).digest()[:8], "big"))


def draw_pair(bits: Bits, part: str) -> Drawn:
    """Draw sentences until one belongs to the part and passes the paper's filter on the length ratio."""
    while True:
        drawn = sentence(bits)
        if is_sound(drawn):
            source = text_of(drawn.english)
            if part_of(source) == part:
                pair = GeneratedPair(source, text_of(drawn.german), tuple(sorted(drawn.links)))
                return Drawn(pair, (len(drawn.english), len(drawn.german)))


def is_sound(drawn: Phrase) -> bool:
    """Return False for a pair that the filter would drop, or whose tokens are ambiguous."""
    a, b = len(drawn.english), len(drawn.german)
    # A German number at the end would swallow the period: "9." reads as an ordinal.
    return a <= RATIO * b and b <= RATIO * a and not drawn.german[-2][-1].isdigit()


def spoil(drawn: Drawn, bits: Bits, part: str) -> GeneratedPair:
    """Return a bad pair: over 175 words, a ratio above 1.5, or an empty side, with equal frequency."""
    kind, flipped = below(bits, 3), bits(1) == 0
    if kind == 0:
        pair = drawn.pair
        return GeneratedPair(pair.source, "", ()) if flipped else GeneratedPair("", pair.target, ())
    if kind == 1:
        return lengthened(drawn, bits, part)
    return misaligned(drawn, bits, part, flipped)


def lengthened(drawn: Drawn, bits: Bits, part: str) -> GeneratedPair:
    """Return a pair of many sentences, with more than 175 words per side."""
    run = [drawn]
    while min(words(item.pair.source for item in run), words(item.pair.target for item in run)) < LONG:
        run.append(draw_pair(bits, part))
    links: list[tuple[int, int]] = []
    a = b = 0
    for item in run:
        links += ((x + a, y + b) for x, y in item.pair.alignment)
        a, b = a + item.tokens[0], b + item.tokens[1]
    source, target = (" ".join(texts) for texts in zip(*(item.pair[:2] for item in run), strict=True))
    return GeneratedPair(source, target, tuple(links))


def misaligned(drawn: Drawn, bits: Bits, part: str, flipped: bool) -> GeneratedPair:
    """Return a pair in which one side has extra sentences."""
    sides: list[list[str]] = [[drawn.pair.source], [drawn.pair.target]]
    short, long = (0, 1) if flipped else (1, 0)
    tokens = list(drawn.tokens)
    while tokens[long] <= RATIO * tokens[short] or words(sides[long]) <= RATIO * words(sides[short]):
        more = draw_pair(bits, part)
        sides[long].append((more.pair.source, more.pair.target)[long])
        tokens[long] += more.tokens[long]
    return GeneratedPair(" ".join(sides[0]), " ".join(sides[1]), drawn.pair.alignment)


def words(texts: Iterable[str]) -> int:
    """Return the number of space-separated words."""
    return sum(text.count(" ") + 1 for text in texts)
