"""Letters of any script: combining marks and joiners belong to the letter before them.

Without them, Moses' rules and regular expressions tear words at the vowels of Thai and Burmese, the virama of
Khmer and Sinhala, and the joiners of Persian and Malayalam.
"""

import re
import unicodedata

JOINERS = "\u200c\u200d"
MARK = "\u0301"  # replaces each of them
AFTER_LETTER = re.compile(rf"(?<=\w){MARK}+")


class OneMark(dict[int, str]):
    """For str.translate: combining marks and joiners become MARK, other characters stay."""

    def __missing__(self, code: int) -> str:
        character = chr(code)
        is_mark = unicodedata.category(character)[0] == "M" or character in JOINERS
        self[code] = MARK if is_mark else character
        return self[code]


ONE_MARK = OneMark()


def with_letters_for_marks(text: str) -> str:
    """Return a text of the same length, with the letter a for each mark or joiner that follows a letter."""
    if text.isascii():
        return text
    parts, place = list[str](), 0
    for found in AFTER_LETTER.finditer(text.translate(ONE_MARK)):
        parts += [text[place : found.start()], "a" * len(found[0])]
        place = found.end()
    return "".join([*parts, text[place:]])
