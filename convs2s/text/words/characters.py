"""Kinds of characters: letters, accents, and what ends a sentence."""

import re
import unicodedata

LETTER = r"[^\W\d_]"
"""A letter, as a regular expression; also a number that is no digit, such as ½."""
find_letter = re.compile(LETTER).search
list_words = re.compile(f"{LETTER}+").findall
"""Returns the runs of letters in a text."""
SENTENCE_ENDS = (".", "!", "?", "…", "。", "！", "？")
"""Punctuation at the end of a sentence."""
FULL_WIDTH = {code: chr(code - 0xFEE0) for code in range(0xFF01, 0xFF5F)}
"""For str.translate: full-width letters, digits and signs to those of normal width."""


def has_letters(text: str) -> bool:
    """Return whether a text has a letter or a digit."""
    return any(map(is_letter, text))


def is_letter(character: str) -> bool:
    """Return whether a character is a letter, or a digit of any script.

    Unlike for LETTER, digits count, as words consist of them, too; other numbers, such as ½, do not.
    """
    return character.isalpha() or character.isdecimal()


def is_accent(text: str, place: int) -> bool:
    """Return whether the character at a place combines with a letter before it."""
    return place > 0 and combines(text[place]) and is_letter(text[place - 1])


def combines(character: str) -> bool:
    """Return whether a character belongs to the one before: an accent, a variation selector, a joiner."""
    return unicodedata.category(character) in ("Mn", "Mc", "Me", "Cf")
