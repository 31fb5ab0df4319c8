"""Restore a language's typography in text with plain quotes, apostrophes and spaces.

Moses' normalization of punctuation, as in the paper's data, writes " for every quotation mark, ' for every
apostrophe and a plain space for every no-break space. This module restores the forms used in print.
"""

import re

NO_BREAK = "\u00a0"
QUOTES = {
    **dict.fromkeys(("bg", "cs", "de", "et", "is", "lt", "sk", "sl"), "„“"),
    **dict.fromkeys(("hr", "hu", "pl", "ro", "sr"), "„”"),
    **dict.fromkeys(("be", "ca", "el", "es", "fr", "it", "nb", "nn", "no", "pt", "ru", "uk"), "«»"),
    **dict.fromkeys(("en", "ga", "nl", "tr", "zh"), "“”"),
    **dict.fromkeys(("fi", "sv"), "””"),
}
"""Opening and closing quotation mark, by ISO 639 code."""
QUOTED = re.compile(r'(?<![^\s(\[{–—-])"(?! )([^"]+)(?<! )"')
APOSTROPHE = re.compile(r"(?<=[^\W\d_])'(?=\w)|(?<![\w'])'(?=\d\ds?\b)")
FRENCH_SPACE = re.compile(r" (?=[;:!?%»])|(?<=«) ")


def typographic(text: str, language: str) -> str:
    """Return the text with the language's quotation marks, with apostrophes and, in French, no-break spaces.

    An unpaired plain quotation mark is unchanged, and so are all those in languages that are not in QUOTES.
    """
    text = APOSTROPHE.sub("’", text)
    if language in QUOTES:
        space = NO_BREAK if language == "fr" else ""
        opening, closing = QUOTES[language][0], QUOTES[language][1]
        text = QUOTED.sub(lambda found: f"{opening}{space}{found[1]}{space}{closing}", text)
    return FRENCH_SPACE.sub(NO_BREAK, text) if language == "fr" else text
