"""Pairs of raw sentences -> words of both sides, on all cores."""

from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path

from convs2s.config.tokenize import TokenizeParams
from convs2s.text.corpus.pair_folder import SIDES
from convs2s.text.corpus.parallel import map_chunks
from convs2s.text.words.tokenization import load_tokenizer

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
        pairs: lines of the corpus.
        languages: of source and target.
        params: of the tokenizer.
        truecasers: output folder of the stage truecase, read if `params.truecase`.
    """
    make = partial(PairTokenizer, languages, params, truecasers)
    for chunk in map_chunks(make, pairs, CHUNK_PAIRS, "tokenize"):
        yield from chunk
