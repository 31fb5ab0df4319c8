"""Letters and signs that languages treat in their own way: case, Romanian diacritics, typography."""

import re
import unicodedata

from convs2s.text.words.characters import LETTER

DOTTED_AND_DOTLESS = ("az", "crh", "tr")
"""ISO 639 codes of languages in which i and ı are two letters, with the capitals İ and I."""
CAPITALIZES_NOUNS = ("de", "lb")
"""ISO 639 codes of languages that capitalize all nouns, and have no title case."""
SMALL_I, CAPITAL_I = str.maketrans("İI", "iı"), str.maketrans("iı", "İI")
# Older text has look-alike cedillas, because older fonts and encodings lacked the right letters.
CEDILLA_TO_COMMA = str.maketrans("ŞşŢţ", "ȘșȚț")
PLAIN = str.maketrans("ȘșȚțĂăÂâÎî", "SsTtAaAaIi")
NO_BREAK = "\u00a0"
ACUTE = "\u0301"
QUOTES = {
    **dict.fromkeys(("bg", "cs", "de", "et", "is", "lt", "sk", "sl"), "„“"),
    **dict.fromkeys(("hr", "hu", "pl", "ro", "sr"), "„”"),
    **dict.fromkeys(("be", "ca", "el", "es", "fr", "it", "nb", "nn", "no", "pt", "ru", "uk"), "«»"),
    **dict.fromkeys(("en", "ga", "nl", "tr", "zh"), "“”"),
    **dict.fromkeys(("fi", "sv"), "””"),
}
"""Opening and closing quotation mark, by ISO 639 code."""
QUOTED = re.compile(r'(?<![^\s(\[{–—-])"(?! )([^"]+)(?<! )"')
APOSTROPHE = re.compile(rf"(?<={LETTER})'(?=\w)|(?<![\w'])'(?=\d\ds?\b)")
FRENCH_SPACE = re.compile(r" (?=[;:!?%»])|(?<=«) ")


def lower(text: str, language: str) -> str:
    """Return a text in lowercase."""
    return (text.translate(SMALL_I) if language in DOTTED_AND_DOTLESS else text).lower()


def upper(text: str, language: str) -> str:
    """Return a text in capitals, as headings have it.

    Letters without title case stay: Georgian has capitals for headlines only. Greek capitals have no accents.
    """
    if language in DOTTED_AND_DOTLESS:
        text = text.translate(CAPITAL_I)
    if language == "el":
        text = unicodedata.normalize("NFC", unicodedata.normalize("NFD", text).replace(ACUTE, ""))
    return "".join(letter if letter.title() == letter else letter.upper() for letter in text)


def capitalize(word: str, language: str) -> str:
    """Return a word as at the start of a sentence; letters after the first are unchanged."""
    first = word[:1].translate(CAPITAL_I) if language in DOTTED_AND_DOTLESS else word[:1]
    return first.title() + word[1:]  # upper() would give Georgian letters used only in headlines


def comma_below(text: str) -> str:
    """Return the text with s and t with cedilla replaced by s and t with comma below."""
    return text.translate(CEDILLA_TO_COMMA)


def without_diacritics(text: str) -> str:
    """Return the text with plain letters instead of the Romanian ones, with comma below or cedilla.

    Only for a Romanian source: a target without diacritics is easier to get right, so BLEU would be about ten
    points too high, and no reader wants such text.
    """
    return comma_below(text).translate(PLAIN)


def typographic(text: str, language: str) -> str:
    """Return the text with the language's quotation marks, with apostrophes and, in French, no-break spaces.

    An unpaired plain quotation mark is unchanged, and so are all those in languages that are not in QUOTES.
    """
    text = APOSTROPHE.sub("’", text)
    if language in QUOTES:
        space = NO_BREAK if language == "fr" else ""
        opening, closing = QUOTES[language][0], QUOTES[language][1]
        text = QUOTED.sub(lambda quoted: f"{opening}{space}{quoted[1]}{space}{closing}", text)
    return FRENCH_SPACE.sub(NO_BREAK, text) if language == "fr" else text
