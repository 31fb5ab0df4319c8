"""Letters, and the places of words in a text."""

import unicodedata
from collections.abc import Sequence

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
    for word in words:
        while text[position : position + 1].isspace():
            position += 1
        nearby = NEARBY if has_letters(word) else 0
        at = lowered.find(word.lower(), position, position + len(word) + nearby)
        starts.append(min(position if at < 0 else at, len(text)))
        ends.append(min(starts[-1] + (1 if at < 0 else len(word)), len(text)))
        position = ends[-1]
    return starts, ends


def split_punctuation(word: str) -> tuple[str, str]:
    """Return a word without the punctuation at its end, and that; the word alone if it is nothing else."""
    end = max((i + 1 for i, character in enumerate(word) if is_letter(character)), default=len(word))
    return word[:end], word[end:]


def has_letters(text: str) -> bool:
    """Return whether a text has a letter or a digit."""
    return any(map(is_letter, text))


def is_letter(character: str) -> bool:
    """Return whether a character is a letter, or a digit of any script."""
    return character.isalpha() or character.isdecimal()


def is_accent(text: str, place: int) -> bool:
    """Return whether the character at a place combines with a letter before it."""
    return place > 0 and combines(text[place]) and is_letter(text[place - 1])


def combines(character: str) -> bool:
    """Return whether a character belongs to the one before: an accent, a variation selector, a joiner."""
    return unicodedata.category(character) in ("Mn", "Mc", "Me", "Cf")
