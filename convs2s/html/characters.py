"""Kinds of characters in a page: those to translate, and those of scripts without spaces."""

import re

TRANSLATABLE = re.compile(r"\b[a-zA-Z]+\b|[^\W\d_a-zA-Z]")
"""A word without digits, or a letter of a script that may have no spaces between words and digits."""
WIDE = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u2e80-\u9fff\uac00-\ud7af\uff00-\uffef]")
"""Characters of scripts without spaces between words or, in Korean, between a word and its particles."""


def is_translatable(text: str) -> bool:
    """Return whether there is anything to translate: a word, not only numbers, dates or names such as A4."""
    return TRANSLATABLE.search(text) is not None
