"""Text comes back exactly, in any language."""

import unicodedata

import pytest

from convs2s.text.words.bare_words import bare_words, with_replaced
from convs2s.text.words.tokenization import Tokenizer
from tests.text.words.test_tokenization import ODD_TEXTS, flags

OWN = flags(lossless=True, normalize_unicode=True, normalize_punctuation=False, remove_nonprinting=False)
RAW = OWN.model_copy(update={"tokenizer": "none"})
TEXTS = {
    "cs": [
        "V roce 1998 bylo na místě 5 lidí z 832 .",
        "„Je-li 6:51,“ řekl 3. 5. 2010 M&S – 5 km/h.",
        "Ceny: 3,5 %",
    ],
    "fr": [
        "L’école d’été : 10\u00a0000 «\u00a0oui\u00a0» !",
        "n’y en a-t-il\u202f? aujourd'hui l'eau",
        "5\u00a0% d'« or »",
    ],
    "ro": ['„Într-un” an, l-am văzut… "da', "Moore's 1.000,50 lei/m²"],
    "de": ["»Ja«, sagte er ‚so‘ und/oder (m/w/d): 5\u202f%!", "O'Neill's §\u00a05 Abs. 2", "z.B. 20°C"],
    "en": [
        "The dogs' \"quoted\" '90s [sic] $5 at 50%, can't ",
        "He said “no,” then — left … www.a.b/c?d=e&f#g",
    ],
    "es": ["¿Qué? ¡No! «Sí» 5 %", "1.º de mayo, a las 6:51h"],
    "ru": ["«Да», – сказал он. № 5 и т.д.", "в 2010-х гг.: 5-6%"],
    "el": ["Τι ώρα είναι; «Ναι» 5%."],
    "hi": ["हिन्दी में क्‍या है। 5%"],
    "ja": ["「はい」と　言った。Hello, 世界!", "\ufeff👨‍👩‍👧 🏴󠁧󠁢󠁥󠁮󠁧󠁿\u2028𠮷 \u2060m²"],
    "km": ["\u200b \u200bទិស\u200bរបស់។\u200b", "(\u200bក)\u200b"],
    "tr": ["İstanbul'da 5'te %50 indirim!"],
    "fa": ["می\u200cخواهم؛ «نه»!"],
}


def wanted(text: str) -> str:
    """Return the text expected back: composed, stripped, with spaces for control characters."""
    composed = unicodedata.normalize("NFC", text).replace("\uffed", "\u25a0")
    controls = (c for c in set(composed) if unicodedata.category(c) == "Cc" and c != "\t")
    return composed.translate(dict.fromkeys(map(ord, controls), " ")).strip()


@pytest.mark.parametrize("params", [OWN, RAW], ids=["moses", "none"])
@pytest.mark.parametrize("language", TEXTS)
def test_text_comes_back(language: str, params: object) -> None:
    """Any spacing between words must be restored, and no word may contain whitespace."""
    tokenizer = Tokenizer(language, params)  # type: ignore[arg-type]
    for text in [
        *TEXTS[language],
        *ODD_TEXTS,
        " a  b \t\u3000c\uffed ",
        unicodedata.normalize("NFD", "L'été"),
    ]:
        words = tokenizer.tokenize(text)
        assert " ".join(words).split() == words
        assert tokenizer.detokenize(words) == wanted(text)


def test_words_are_not_torn_at_apostrophes_and_in_numbers() -> None:
    """Typographic apostrophes split like plain ones, only in French; no-break spaces group digits."""
    words = Tokenizer("fr", OWN).tokenize("L’école n’a 10\u00a0000 !")
    assert words == ["L’", "école", "n’", "a", "10\U000f00a0000", "!"]
    assert Tokenizer("ro", OWN).tokenize("Moore’s într-un") == ["Moore’s", "într-un"]


@pytest.mark.parametrize(
    ("language", "text", "words"),
    [
        ("th", "กินข้าวที่ บ้าน", "กินข้าวที่|บ้าน"),
        ("my", "ကိုက်ညီ ချက်", "ကိုက်ညီ|ချက်"),
        ("ml", "നിങ്ങള്\u200d സ്വയം.", "നിങ്ങള്\u200d|സ്വയം|."),
        ("km", "ទិស\u200bក្រុម", "ទិស|\U000f200bក្រុម"),
        ("hi", "डॉ. राम स्मृति", "डॉ.|राम|स्मृति"),
        ("he", "שָׁלוֹם, עוֹלָם", "שָׁלוֹם|,|עוֹלָם"),
        ("ar", "مُحَمَّد", "مُحَمَّد"),
        ("fa", "می\u200cخواهم!", "می\u200cخواهم|!"),
        ("ff", "𞤢𞤣𞤢𞤥 ᲐᲑ", "𞤢𞤣𞤢𞤥|ᲐᲑ"),
        ("ko", "한국어 문장.", "한국어|문장|."),
        ("de", "\u1eb9\u0304n Donau\u00addampf", "\u1eb9\u0304n|Donau\u00addampf"),
    ],
)
def test_words_of_all_scripts_are_whole(language: str, text: str, words: str) -> None:
    """Moses' tables lack most Thai vowels, the joiners, and letters that were added to Unicode later."""
    tokenizer = Tokenizer(language, OWN)
    found = tokenizer.tokenize(text)
    assert found == words.split("|")
    assert tokenizer.detokenize(found) == text
    bare = [word.lstrip("\U000f200b").rstrip(".") for word in found]
    assert [word for word in bare_words(Tokenizer(language, RAW).tokenize(text), RAW) if word != "."] == [
        word for word in bare if word
    ]


def test_a_replacement_takes_the_place_of_a_whole_word() -> None:
    """Combining marks belong to the word; punctuation stays."""
    assert with_replaced("«ที่<unk>ข้าว»", "บ้าน", RAW) == "«บ้าน»"
    assert with_replaced("बाज़ा<unk>।", "हाट", RAW) == "हाट।"


def test_only_unusual_spacing_is_marked() -> None:
    """A model need not learn the spacing that detokenization writes anyway."""
    assert Tokenizer("en", OWN).tokenize('Yes, "he" (it) can\'t.') == [
        "Yes", ",", '"', "he", '"', "(", "it", ")", "can", "'t", ".",
    ]  # fmt: skip
    assert Tokenizer("en", OWN).tokenize("at 5 km/h") == ["at", "5", "km", "\uffed/\uffed", "h"]


def test_decomposed_characters_are_composed() -> None:
    """Text from macOS would get other pieces, and its references would never match."""
    decomposed = unicodedata.normalize("NFD", "L'été à Köln")
    for params in (OWN, RAW, flags(normalize_unicode=True), flags(normalize_unicode=True, tokenizer="none")):
        tokenizer = Tokenizer("fr", params)
        assert tokenizer.tokenize(decomposed) == tokenizer.tokenize("L'été à Köln")
        assert tokenizer.reference(decomposed) == "L'été à Köln"
    assert Tokenizer("fr", flags()).reference(decomposed) == decomposed


def test_the_words_of_alignment_have_no_marks_and_no_punctuation() -> None:
    """Otherwise "house," and "house" would be two words in the dictionary."""
    text = "L’eau (don't) coûte 10\u00a0000\u00a0€, km/h..."
    number = "10\U000f00a0000"
    assert bare_words(Tokenizer("fr", RAW).tokenize(text), RAW) == [
        "L’", "eau", "(", "don't", ")", "coûte", number, "€", ",", "km", "/", "h", ".", ".", ".",
    ]  # fmt: skip
    words = Tokenizer("en", OWN).tokenize("at 5 km/h")
    assert bare_words(words, OWN) == ["at", "5", "km", "/", "h"]
    assert bare_words(words, flags()) == words
