"""Truecasing as in Moses: give words the case they have in mid-sentence, and undo that.

At the start of a sentence, "The" becomes "the" while "Paris" stays, so a model needs one word instead of two.
The rules are those of Moses' train-truecaser, truecase and detruecase, except that ties between equally
frequent cases of a word go to the first by spelling instead of an arbitrary one.
"""

import shutil
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from convs2s.base.files import SIDES, atomic_path
from convs2s.ids.vocabulary import most_frequent
from convs2s.text.words.orthography import capitalize, lower

TRUECASER, TARGET_TRUECASER = "truecaser.tsv", "truecaser.target.tsv"
"""Files of a model folder; only present if the model uses truecasing."""
SENTENCE_ENDS = frozenset({".", ":", "?", "!"})
"""Words after which a sentence begins, as in Moses' truecaser: a colon, too, and Western punctuation only."""
PASSED_OVER = frozenset({"(", "[", '"', "'", "&apos;", "&quot;", "&#91;", "&#93;"})
"""Words that may precede the first word of a sentence."""


def words_inside(words: Iterable[str]) -> Iterator[str]:
    """Yield the words whose case is their own: those that have a case and do not start a sentence."""
    first = True
    for word in words:
        if word in PASSED_OVER:
            continue
        if not first and word in SENTENCE_ENDS:
            first = True
            continue
        if not first and word.lower() != word.upper():
            yield word
        first = False


class Truecaser:
    """Gives words the case that they have most often.

    Args:
        counts: how often each word occurs inside a sentence, as yielded by `words_inside`.
        language: ISO 639 code; matters for languages with special rules of case.
    """

    def __init__(self, counts: Mapping[str, int], language: str = "") -> None:
        self._language = language
        self._words = frozenset(counts)
        self._best: dict[str, str] = {}
        for word, _ in most_frequent(counts):
            self._best.setdefault(lower(word, language), word)

    def truecase(self, words: Iterable[str]) -> list[str]:
        """Return words in their most frequent case: all at sentence starts, only unknown ones elsewhere."""
        return [
            self._best.get(lower(word, self._language), word) if first or word not in self._words else word
            for word, first in with_starts(words)
        ]


def detruecase(words: Iterable[str], language: str = "") -> list[str]:
    """Return the words with a capital at the start of each sentence."""
    return [capitalize(word, language) if first else word for word, first in with_starts(words)]


def with_starts(words: Iterable[str]) -> Iterator[tuple[str, bool]]:
    """Yield each word, and whether a sentence starts at it or at a later word that it only precedes."""
    first = True
    for word in words:
        yield word, first
        first = word in SENTENCE_ENDS or (first and word in PASSED_OVER)


def copy_truecasers(folder: Path, out: Path) -> None:
    """Copy the truecasers of a model folder to out/{source,target}.tsv, as the stage truecase writes them."""
    with atomic_path(out) as temporary:
        temporary.mkdir()
        for side, name in zip(SIDES, (TRUECASER, TARGET_TRUECASER), strict=True):
            shutil.copyfile(folder / name, temporary / f"{side}.tsv")
