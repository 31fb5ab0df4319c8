"""The case of words, learned from raw training pairs: counts per side, on all cores."""

from collections import Counter
from collections.abc import Iterable
from functools import partial

from convs2s.config.tokenize import TokenizeParams
from convs2s.text.corpus.parallel import map_chunks
from convs2s.text.words.tokenization import Tokenizer
from convs2s.text.words.truecasing import words_inside

CHUNK_PAIRS = 2000


class PairCounter:
    """Counts the sentence-internal words of chunks of pairs, one side at a time."""

    def __init__(self, languages: tuple[str, str], params: TokenizeParams) -> None:
        self._tokenizers = [Tokenizer(language, params) for language in languages]

    def __call__(self, pairs: list[tuple[str, str]]) -> tuple[Counter[str], Counter[str]]:
        source, target = (
            Counter(word for line in lines for word in words_inside(tokenizer.words(line)))
            for tokenizer, lines in zip(self._tokenizers, zip(*pairs, strict=True), strict=True)
        )
        return source, target


def count_cases(
    pairs: Iterable[tuple[str, str]], languages: tuple[str, str], params: TokenizeParams
) -> tuple[Counter[str], Counter[str]]:
    """Return how often each word occurs inside a sentence, for source and target.

    Args:
        pairs: raw, as in the corpus.
        languages: of source and target.
        params: options of the tokenizer.
    """
    source, target = Counter[str](), Counter[str]()
    for chunk in map_chunks(partial(PairCounter, languages, params), pairs, CHUNK_PAIRS, "truecase"):
        source.update(chunk[0])
        target.update(chunk[1])
    return source, target
