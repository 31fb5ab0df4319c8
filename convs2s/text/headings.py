"""Headings of tables, such as English and German: a first row that would be taken as a pair of sentences.

A heading names two things, the languages or the sides of a pair; a sentence and its translation name the same
one. So "Englisch", "Deutsch" is a heading, and "English", "Englisch" is none.
"""

import re
from collections.abc import Sequence

from convs2s.text.languages import language_name
from convs2s.text.words.characters import list_words

SOURCE = {
    "article", "ausgangstext", "brontekst", "document", "fonte", "fuente", "input", "origen", "original",
    "quelle", "quelltext", "source", "sources", "src",
}  # fmt: skip
TARGET = {
    "cible", "destino", "doeltekst", "headline", "hypothesis", "output", "ref", "reference", "summary",
    "target", "targets", "tgt", "traducción", "traduction", "traduzione", "translation", "translations",
    "trg", "vertaling", "ziel", "zieltext", "übersetzung",
}  # fmt: skip
OTHERS = {
    "col", "column", "formal", "id", "informal", "lang", "language", "line", "phrase", "raw", "segment",
    "sentence", "sentences", "string", "text", "texts", "title", "translated", "value", "version", "word",
}  # fmt: skip
"""Words of headings that say neither language nor side."""
OWN_NAMES = {
    "af": "afrikaans/engels", "ar": "العربية/الإنجليزية", "bg": "български/английски",
    "ca": "català/anglès", "cs": "čeština česky/angličtina anglicky", "cy": "cymraeg/saesneg",
    "da": "dansk/engelsk", "de": "deutsch/englisch", "el": "ελληνικά/αγγλικά", "en": "english/english",
    "eo": "esperanto/angla", "es": "español castellano/inglés", "et": "eesti/inglise",
    "eu": "euskara/ingelesa", "fa": "فارسی/انگلیسی", "fi": "suomi/englanti", "fr": "français/anglais",
    "ga": "gaeilge/béarla", "gl": "galego/inglés", "he": "עברית/אנגלית", "hr": "hrvatski/engleski",
    "hu": "magyar/angol", "hy": "հայերեն/անգլերեն", "id": "indonesia/inggris", "is": "íslenska/enska",
    "it": "italiano/inglese", "ja": "日本語/英語", "ka": "ქართული/ინგლისური", "ko": "한국어/영어",
    "lt": "lietuvių/anglų",
    "lv": "latviešu/angļu", "mk": "македонски/англиски", "ms": "melayu/inggeris", "nb": "norsk/engelsk",
    "nl": "nederlands/engels", "no": "norsk/engelsk", "pl": "polski/angielski", "pt": "português/inglês",
    "ro": "română/engleză", "ru": "русский/английский", "sk": "slovenčina slovensky/angličtina anglicky",
    "sl": "slovenščina/angleščina", "sq": "shqip/anglisht", "sr": "српски srpski/енглески engleski",
    "sv": "svenska/engelska", "sw": "kiswahili/kiingereza", "tr": "türkçe/ingilizce",
    "uk": "українська/англійська", "vi": "việt/anh", "zh": "中文 汉语 漢語/英文 英语 英語",
}  # fmt: skip
"""What a language calls itself, and English."""
LONG_CODES = {
    "ara": "ar", "ces": "cs", "cze": "cs", "dan": "da", "deu": "de", "ger": "de", "ell": "el", "gre": "el",
    "eng": "en", "spa": "es", "fas": "fa", "fin": "fi", "fra": "fr", "fre": "fr", "heb": "he", "hin": "hi",
    "hun": "hu", "ita": "it", "jpn": "ja", "kor": "ko", "nld": "nl", "dut": "nl", "nor": "no", "pol": "pl",
    "por": "pt", "ron": "ro", "rum": "ro", "rus": "ru", "slk": "sk", "swe": "sv", "tur": "tr", "ukr": "uk",
    "vie": "vi", "zho": "zh", "chi": "zh",
}  # fmt: skip
NUMBERS = re.compile(r"\d+").findall
MOST_WORDS = 4
SENTENCE_ENDS = (".", "!", "?", "…", "。")
"""Fewer than in `convs2s.text.words.characters`: the same rows are headings as in earlier versions."""


def is_heading(cells: Sequence[str], languages: tuple[str, str]) -> bool:
    """Return whether a pair of texts only names what is below: languages or sides, each another.

    Args:
        languages: codes of source and target.
    """
    source, target = (named(cell, languages) for cell in cells)
    if source is None or target is None:
        return False
    if source or target:
        return source != target
    first, second = cells  # such as sentence1, sentence2
    return list_words(first.lower()) == list_words(second.lower()) and NUMBERS(first) != NUMBERS(second)


def named(cell: str, languages: tuple[str, str]) -> set[str] | None:
    """Return the codes of the languages, and the sides, that a text names; None if it says more than that."""
    words = list_words(cell.lower())
    if not 0 < len(words) <= MOST_WORDS or cell.rstrip("\"')] ").endswith(SENTENCE_ENDS):
        return None
    text = f" {' '.join(words)} "
    by_name = {
        code
        for code in languages
        if any(f" {name} " in text for name in list_language_names(code, languages))
    }
    if by_name:
        return by_name
    short = {word: LONG_CODES.get(word, word) for word in words}
    codes = {*short.values()} & {*languages}
    # Beside a code, two letters may be a region, as in en_US.
    others = {word for word in words if short[word] not in codes and not (codes and len(word) == 2)}
    if others - SOURCE - TARGET - OTHERS:
        return None
    sides = (("source side", SOURCE), ("target side", TARGET))
    return codes | {side for side, known in sides if others & known}


def list_language_names(code: str, languages: tuple[str, str]) -> list[str]:
    """Return names of a language: its own, that in English and, of English, those in these languages."""
    names = OWN_NAMES.get(code, "").partition("/")[0].split()
    if language_name(code) != code:
        names.append(language_name(code).lower())
    if code == "en":
        names += [name for other in languages for name in OWN_NAMES.get(other, "").partition("/")[2].split()]
    return names
