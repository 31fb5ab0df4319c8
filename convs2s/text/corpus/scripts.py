"""The scripts of languages: whether a line can be in a language, judging by its letters alone."""

import re
from collections.abc import Callable

from convs2s.text.words.characters import find_letter

RANGES = {
    "Latin": "A-Za-z\u00c0-\u024f\u1e00-\u1eff", "Greek": "\u0370-\u03ff\u1f00-\u1fff",
    "Cyrillic": "\u0400-\u052f", "Armenian": "\u0530-\u058f", "Hebrew": "\u0590-\u05ff\ufb1d-\ufb4f",
    "Arabic": "\u0600-\u06ff\u0750-\u077f\ufb50-\ufdff\ufe70-\ufefc", "Devanagari": "\u0900-\u097f",
    "Bengali": "\u0980-\u09ff", "Gurmukhi": "\u0a00-\u0a7f", "Gujarati": "\u0a80-\u0aff",
    "Oriya": "\u0b00-\u0b7f", "Tamil": "\u0b80-\u0bff", "Telugu": "\u0c00-\u0c7f", "Kannada": "\u0c80-\u0cff",
    "Malayalam": "\u0d00-\u0d7f", "Sinhala": "\u0d80-\u0dff", "Thai": "\u0e00-\u0e7f", "Lao": "\u0e80-\u0eff",
    "Tibetan": "\u0f00-\u0fff", "Myanmar": "\u1000-\u109f", "Georgian": "\u10a0-\u10ff\u1c90-\u1cbf",
    "Ethiopic": "\u1200-\u139f", "Canadian_Aboriginal": "\u1400-\u167f", "Khmer": "\u1780-\u17ff",
    "Hangul": "\u1100-\u11ff\u3130-\u318f\uac00-\ud7af", "Hiragana+Katakana": "\u3040-\u30ff",
    "Han": "\u2e80-\u2fdf\u3005-\u3007\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff",
}  # fmt: skip
"""Characters of scripts, by Unicode's blocks; names as in regular expressions, such as \\p{Cyrillic}."""

LANGUAGES = {
    "Latin": (
        "af az bs ca cs cy da de en eo es et eu fi fr ga gl ha hr hu id is it iu ku lt lv ms mt nb nl no pl "
        "pt ro sk sl so sq sr sv sw tk tl tr uz vi xh yo zu"
    ),
    "Cyrillic": "az be bg bs kk ky mk mn ru sr tg tk tt uk uz",
    "Greek": "el", "Armenian": "hy", "Hebrew": "he", "Arabic": "ar fa ku pa ps ug ur",
    "Devanagari": "hi mr ne", "Bengali": "as bn", "Gurmukhi": "pa", "Gujarati": "gu", "Oriya": "or",
    "Tamil": "ta", "Telugu": "te", "Kannada": "kn", "Malayalam": "ml", "Sinhala": "si", "Thai": "th",
    "Lao": "lo", "Tibetan": "bo dz", "Myanmar": "my", "Georgian": "ka", "Ethiopic": "am",
    "Canadian_Aboriginal": "iu", "Khmer": "km", "Hangul": "ko",
    "Hiragana+Katakana": "ja", "Han": "ja ko yue zh",
}  # fmt: skip
"""Languages, as ISO 639 codes, by the scripts in which they are written; some have two."""
SCRIPTS: dict[str, list[str]] = {}
"""Scripts of a language by its code; of other languages nothing is known."""
for script, codes in LANGUAGES.items():
    for code in codes.split():
        SCRIPTS.setdefault(code, []).append(script)


def writer_of(language: str) -> Callable[[str], object]:
    """Return a function that finds a letter of the language's scripts in a line; any letter if unknown."""
    if language not in SCRIPTS:
        return find_letter
    return re.compile(f"[{''.join(RANGES[script] for script in SCRIPTS[language])}]").search


def script_pattern(language: str) -> str:
    """Return the regular expression, for grep -P, of a letter of the language's scripts."""
    names = "+".join(SCRIPTS[language]).split("+")
    return "[" + "".join(rf"\p{{{name}}}" for name in names) + "]"
