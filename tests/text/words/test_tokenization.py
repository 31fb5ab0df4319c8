"""Tokenization gives the same words as Moses, for any text."""

import re
import unicodedata
from itertools import product

import pytest
from sacremoses import MosesPunctNormalizer

from convs2s.config.tokenize import TokenizeParams
from convs2s.text.words.tokenization import DOTS, DOTS_BEFORE_QUOTE, UNUSUAL, Tokenizer, dots_after_quote
from convs2s.text.words.truecasing import Truecaser
from tests.decode.parrot import TOKENIZE

# sacremoses takes seconds to compile its expressions for Chinese, Japanese and Korean.
CHINESE = pytest.param("zh", marks=pytest.mark.slow)

ODD_TEXTS = [
    "",
    " \t ",
    "wort " * 2000,
    "🙂👩‍👩‍👧 emoji!",
    "nul\x00 bell\x07 esc\x1b del\x7f",
    "line\u2028para\u2029next\x85vertical\x0bform\x0c.",
    "a\rb\tc\u00a0d\u3000e\u200bf\ufefff",
    "soft\u00adhyphen \ue000private \u202eright-to-left",
    "„Ja“, sagte er … «oui» »nein« ‘so’ ‚da‘ it’s nº\u00a05 20\u00a0% 1\u00a0000",
    "the dogs' 'quoted' rock'n'roll '90s l'eau d'or O'Neill's can't ''x'' ``y``",
    'He said "no," and (then) left ( quickly ) . . . ... ..... end." 3,14 U.S. No. 5',
    "a@-@b &amp; < > [x] | &quot; DOTMULTI #NUMERIC_ONLY# THISISPROTECTED000 _ELLIPSIS_",
    "中文和日本語。한국어 עברית العربية हिन्दी",
    "\u2581\u2585 \ufffd \U0001f1e9\U0001f1ea",
    "." * 300 + '"',
    "x" * 20_000,
]


def flags(**changes: object) -> TokenizeParams:
    return TokenizeParams.model_validate(TOKENIZE.model_dump() | changes)


def test_escape_and_aggressive_hyphens_work_as_in_moses() -> None:
    """Both are flags of Moses' tokenizer, off by default and on in others' data; detokenizing undoes them."""
    tokenizer = Tokenizer("en", flags(escape=True, aggressive_hyphens=True))
    words = tokenizer.tokenize('a well-known & [odd] man\'s "|"')
    assert " ".join(words) == "a well @-@ known &amp; &#91; odd &#93; man &apos;s &quot; &#124; &quot;"
    assert tokenizer.detokenize(words) == 'a well-known & [odd] man\'s "|"'
    # Without escaping, "&amp;" can only come from the text, and must not become "&".
    assert Tokenizer("en", flags()).detokenize(["AT", "&amp;", "T"]) == "AT &amp; T"


def test_control_and_format_characters_become_spaces() -> None:
    """Moses does the same; emoji are printable, and unassigned characters may become so."""
    words = Tokenizer("en", flags()).tokenize("a\x07b\u200bc\ue000d 🙂 \u0378")
    assert words == ["a", "b", "c", "d", "🙂", "\u0378"]


def test_pretokenized_text_is_only_split() -> None:
    """`none` is for text that is already tokenized, such as Stanford's WMT'14 data."""
    tokenizer = Tokenizer("de", flags(tokenizer="none"))
    assert tokenizer.tokenize(" a.b  ##AT##-##AT##\u2028\t„c“ ") == ["a.b", "##AT##-##AT##", "„c“"]
    assert tokenizer.detokenize(["a.b", ",", "„c“"]) == "a.b , „c“"


RAW = flags(tokenizer="spaces", normalize_unicode=True)


@pytest.mark.parametrize(
    "text",
    [
        *ODD_TEXTS,
        " a  b   \tc\u3000 ",
        "L’école d’été\u202f: 10\u00a0000 km/h «\u00a0oui\u00a0»",
        "「はい」と　言った。👨‍👩‍👧",
        "\u200bទិស\u200bរបស់។",
        "می\u200cخواهم",
    ],
)
def test_raw_text_comes_back(text: str) -> None:
    """Any spaces are restored, and no word contains whitespace; line ends become spaces."""
    tokenizer = Tokenizer("xx", RAW)
    words = tokenizer.tokenize(text)
    assert " ".join(words).split() == words
    expected = unicodedata.normalize("NFC", " ".join(text.splitlines())).strip(" ")
    assert tokenizer.detokenize(words).strip() == expected.strip()


def test_decomposed_characters_are_composed() -> None:
    """Text from macOS would get other pieces, and its references would never match."""
    decomposed = unicodedata.normalize("NFD", "L'été à Köln")
    for params in (RAW, flags(normalize_unicode=True), flags(normalize_unicode=True, tokenizer="none")):
        tokenizer = Tokenizer("fr", params)
        assert tokenizer.tokenize(decomposed) == tokenizer.tokenize("L'été à Köln")
        assert tokenizer.reference(decomposed) == "L'été à Köln"
    split = Tokenizer("fr", flags(normalize_unicode=True, corpus="tokenized"))
    assert split.words(decomposed) == ["L'été", "à", "Köln"]
    assert Tokenizer("fr", flags()).reference(decomposed) == decomposed


@pytest.mark.parametrize("tokenizer", ["moses", "spaces", "none"])
@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize("language", ["en", "de", "fr", "cs", "fi", "ro", "xx", CHINESE])
def test_any_text_gives_one_line(tokenizer: str, clean: bool, language: str) -> None:
    """One line in, one line out: no word is empty or contains whitespace, and nothing raises."""
    words_of = Tokenizer(
        language, flags(tokenizer=tokenizer, remove_nonprinting=clean, normalize_punctuation=clean)
    )
    for text in ODD_TEXTS:
        words = words_of.tokenize(text)
        assert " ".join(words).split() == words
        line = words_of.detokenize(words)
        assert "\n" not in line
        assert (line == "") == (not words)


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ("V roce 1998 bylo na místě 5 lidí z 832 .", "V roce 1998 bylo na místě 5 lidí z 832."),
        ("Stojí 3 , 14 nebo 1 . 2 . 3 , 5", "Stojí 3,14 nebo 1.2.3,5"),
        ("a' - li", "a' - li"),  # sacremoses raises TypeError
    ],
)
def test_czech_numbers_are_joined_only_around_their_own_point(words: str, text: str) -> None:
    """Moses does the same; sacremoses joins all numbers if the sentence ends in a number and a full stop."""
    assert Tokenizer("cs", flags()).detokenize(words.split()) == text


@pytest.mark.parametrize("language", ["en", "de", "fr", "it", "cs", "es", "ro", "zh"])
def test_rules_for_punctuation_change_only_unusual_text(language: str) -> None:
    """sacremoses itself is asked about text without signs that its rules look for."""
    normalizer = MosesPunctNormalizer(language, perl_parity=True)
    texts = ["".join(signs) for signs in (*product(" ,.?!'-a1ß", repeat=3), *product(" ,.'a1", repeat=4))]
    usual = [text for text in texts if not UNUSUAL.search(text)]
    assert len(usual) > 1500
    assert [normalizer.normalize(text) for text in usual] == [text.strip() for text in usual]


def test_a_truecaser_removes_the_case_of_sentence_starts() -> None:
    """The first word of a sentence is then the word that it is elsewhere."""
    truecaser = Truecaser({"the": 2, "Paris": 1})
    tokenizer = Tokenizer("en", flags(truecase=True), truecaser)
    assert tokenizer.tokenize("The cat. Paris.") == ["the", "cat", ".", "Paris", "."]


def test_words_keep_their_case_without_a_truecaser_or_without_the_flag() -> None:
    """References have no truecaser: scores compare case as it is."""
    assert Tokenizer("en", flags(truecase=True)).tokenize("The cat.") == ["The", "cat", "."]
    truecaser = Truecaser({"the": 2, "Paris": 1})
    assert Tokenizer("en", flags(), truecaser).tokenize("The cat.") == ["The", "cat", "."]


def test_translations_of_a_truecased_model_get_capitals() -> None:
    """A model that was trained without capitals writes none."""
    tokenizer = Tokenizer("en", flags(truecase=True))
    assert tokenizer.restore_case(["the", "cat", "."]) == ["The", "cat", "."]
    assert tokenizer.detokenize(["the", "cat", ".", "it", "!"]) == "The cat. It!"


def test_translations_of_another_model_keep_their_case() -> None:
    """Such a model has learned where capitals are."""
    assert Tokenizer("en", flags()).restore_case(["the"]) == ["the"]


def test_dots_before_a_quotation_mark_change_as_in_sacremoses() -> None:
    """Its own rule takes minutes for a long line of dots; ours must give the same for any text."""
    rules = dict(MosesPunctNormalizer("de").substitutions)
    for length in range(8):
        for characters in product('."< ', repeat=length):
            text = "".join(characters)
            expected = re.sub(DOTS_BEFORE_QUOTE, rules[DOTS_BEFORE_QUOTE], text)
            assert DOTS.sub(dots_after_quote, text) == expected
