"""The places of words in a text."""

from collections.abc import Sequence

from convs2s.text.words.characters import FULL_WIDTH, has_letters, is_letter

NEARBY = 30
"""Characters within which a word is looked for, as the tokenizer may have rewritten those before it."""


def locate_words(text: str, words: Sequence[str]) -> tuple[list[int], list[int]]:
    """Return where each word starts and ends in a text, which the tokenizer may have rewritten.

    A word that is not found, such as an escaped quotation mark, counts as one character; the next word that
    is found puts this right.
    """
    starts, ends = list[int](), list[int]()
    position = 0  # where the last word ends
    lowered = text.lower() if len(text.lower()) == len(text) else text
    lowered = lowered.translate(FULL_WIDTH)
    for word in words:
        while text[position : position + 1].isspace():
            position += 1
        nearby = NEARBY if has_letters(word) else 0
        at = lowered.find(word.lower().translate(FULL_WIDTH), position, position + len(word) + nearby)
        starts.append(min(position if at < 0 else at, len(text)))
        ends.append(min(starts[-1] + (1 if at < 0 else len(word)), len(text)))
        position = ends[-1]
    return starts, ends


def split_punctuation(word: str) -> tuple[str, str]:
    """Return a word without the punctuation at its end, and that; the word alone if it is nothing else."""
    end = max((i + 1 for i, character in enumerate(word) if is_letter(character)), default=len(word))
    return word[:end], word[end:]
