"""Letters of any script: combining marks and joiners belong to the letter before them.

Otherwise, Moses' rules and regular expressions would split words at the vowels of Thai and Burmese, the
virama of Khmer and Sinhala, and the joiners of Persian and Malayalam.
"""

import re
import unicodedata

JOINERS = "\u200c\u200d"
MARK = "\u0301"  # replaces each of them
AFTER_LETTER = re.compile(rf"(?<=\w){MARK}+")


class OneMark(dict[int, str]):
    """For str.translate: maps combining marks and joiners to MARK, other characters to themselves."""

    def __missing__(self, code: int) -> str:
        character = chr(code)
        is_mark = unicodedata.category(character)[0] == "M" or character in JOINERS
        self[code] = MARK if is_mark else character
        return self[code]


ONE_MARK = OneMark()


def with_letters_for_marks(text: str) -> str:
    """Return the text with an "a" for each mark or joiner after a letter; its length stays the same."""
    if text.isascii():
        return text
    parts, place = list[str](), 0
    for found in AFTER_LETTER.finditer(text.translate(ONE_MARK)):
        parts += [text[place : found.start()], "a" * len(found[0])]
        place = found.end()
    return "".join([*parts, text[place:]])
