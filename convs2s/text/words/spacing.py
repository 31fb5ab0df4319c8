"""Where detokenization writes spaces by default, from left to right, in one language.

The rules need not always be right: `lossless` marks each place where a text differs from them. But the better
they are, the fewer marks a model has to learn.
"""

import re

CLOSING = re.compile(r"[.,;:!?)\]}%…]+")
OPENING = re.compile(r"[(\[{¿¡$£]+")
QUOTES = {sign: kind for kind in ('"„“”‟', "'‚‘’", "«»", "‹›") for sign in kind}
"""Each quotation mark's kind; marks of the same kind alternately open and close."""
FRENCH_SPACED = re.compile(r"[;:!?%]+")
ENGLISH_ENDING = re.compile(r"['’]\w+")
ELISION = re.compile(r".*\w['’]")
ELIDING = ("fr", "it")
"""Languages with elision before a vowel, as in l'eau; Moses' tokenizer splits there."""


class Spacing:
    """The spaces of one sentence; call `before` for each word in turn."""

    def __init__(self, language: str) -> None:
        self._language = language
        self._opened: set[str] = set()
        self._glued = True  # at the start of the sentence, nothing precedes the next word

    def before(self, word: str) -> str:
        """Return the spacing between the previous word and this one: a space or nothing."""
        glued, self._glued = self._glued, False
        if word in QUOTES:
            return self._before_quote(QUOTES[word], glued)
        self._glued = bool(OPENING.fullmatch(word)) or (
            self._language in ELIDING and bool(ELISION.fullmatch(word))
        )
        return "" if glued or self._follows_closely(word) else " "

    def _before_quote(self, kind: str, glued: bool) -> str:
        spaced = self._language == "fr" and kind == "«»"
        if kind in self._opened:
            self._opened.remove(kind)
            return " " if spaced else ""
        self._opened.add(kind)
        self._glued = not spaced
        return "" if glued else " "

    def _follows_closely(self, word: str) -> bool:
        if CLOSING.fullmatch(word):
            return not (self._language == "fr" and FRENCH_SPACED.fullmatch(word))
        return self._language == "en" and bool(ENGLISH_ENDING.fullmatch(word))
