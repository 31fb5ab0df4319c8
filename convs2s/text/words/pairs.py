"""Pairs of raw sentences on all cores: their words, and how often each word occurs for truecasing."""

from collections import Counter
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path

from convs2s.base.files import SIDES
from convs2s.base.parallel import map_chunks
from convs2s.config.tokenize import TokenizeParams
from convs2s.text.words.tokenization import Tokenizer, load_tokenizer
from convs2s.text.words.truecasing import words_inside

CHUNK_PAIRS = 2000


class PairTokenizer:
    """Tokenizes chunks of pairs into words separated by single spaces."""

    def __init__(self, languages: tuple[str, str], params: TokenizeParams, truecasers: Path) -> None:
        self._source, self._target = (
            load_tokenizer(language, params, truecasers / f"{side}.tsv")
            for side, language in zip(SIDES, languages, strict=True)
        )

    def __call__(self, pairs: list[tuple[str, str]]) -> list[tuple[str, str]]:
        return [
            (" ".join(self._source.words(source)), " ".join(self._target.words(target)))
            for source, target in pairs
        ]


def tokenize_pairs(
    pairs: Iterable[tuple[str, str]], languages: tuple[str, str], params: TokenizeParams, truecasers: Path
) -> Iterator[tuple[str, str]]:
    """Yield each pair's words, separated by single spaces; on all cores, in order, a few chunks at a time.

    Args:
        truecasers: output folder of the stage truecase, read if `params.truecase`.
    """
    make = partial(PairTokenizer, languages, params, truecasers)
    for chunk in map_chunks(make, pairs, CHUNK_PAIRS, "tokenize"):
        yield from chunk


class PairCounter:
    """Counts the sentence-internal words of chunks of pairs, one side at a time."""

    def __init__(self, languages: tuple[str, str], params: TokenizeParams) -> None:
        self._tokenizers = [Tokenizer(language, params) for language in languages]

    def __call__(self, pairs: list[tuple[str, str]]) -> list[Counter[str]]:
        sides = zip(self._tokenizers, zip(*pairs, strict=True), strict=True)
        return [
            Counter(word for line in lines for word in words_inside(tokenizer.words(line)))
            for tokenizer, lines in sides
        ]


def count_cases(
    pairs: Iterable[tuple[str, str]], languages: tuple[str, str], params: TokenizeParams
) -> tuple[Counter[str], Counter[str]]:
    """Return how often each word of a raw corpus occurs inside a sentence, for source and target."""
    source, target = Counter[str](), Counter[str]()
    make = partial(PairCounter, languages, params)
    for source_counts, target_counts in map_chunks(make, pairs, CHUNK_PAIRS, "truecase"):
        source.update(source_counts)
        target.update(target_counts)
    return source, target
