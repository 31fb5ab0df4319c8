"""The positions of replaced unknown words in a translation's text."""

import re
from collections.abc import Sequence
from typing import Any

from convs2s.package.translator import Translation
from convs2s.text.words.tokenization import Tokenizer


def replaced_words(translation: Translation, tokenizer: Tokenizer) -> list[dict[str, Any]]:
    """Return the replaced words: start and end in the text, the source word, and `dictionary` or `copy`."""
    found = spans(translation.text, [tokenizer.detokenize([word]) for word in translation.words])
    return [
        {"start": start, "end": end, "source_word": replaced.source_word, "how": replaced.how}
        for replaced in translation.replacements
        for start, end in [found[replaced.word]]
    ]


def spans(text: str, words: Sequence[str]) -> list[tuple[int, int]]:
    """Return the start and end of each word in detokenized text; an empty span if the word is not there.

    Detokenization moves spaces and may change case, but keeps the order of words.
    """
    found, position = list[tuple[int, int]](), 0
    for word in words:
        match = re.compile(re.escape(word), re.IGNORECASE).search(text, position)
        found.append(match.span() if match else (position, position))
        position = found[-1][1]
    return found
