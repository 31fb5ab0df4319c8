"""Plain quotes and spaces become those of the language."""

import pytest

from convs2s.text.words.orthography import typographic
from convs2s.text.words.tokenization import Tokenizer
from tests.text.words.test_tokenization import flags


@pytest.mark.parametrize(
    ("language", "plain", "printed"),
    [
        ("de", 'Er sagte "ja" ("so geht\'s") und "nein".', "Er sagte „ja“ („so geht’s“) und „nein“."),
        ("fr", 'L\'eau "froide" : 5 % !', "L’eau «\u00a0froide\u00a0»\u00a0: 5\u00a0%\u00a0!"),
        ("en", "The \"cats' milk\" isn't from the '90s.", "The “cats' milk” isn’t from the ’90s."),
        ("pl", '"Tak", rzekł.', "„Tak”, rzekł."),
        ("ru", '"Да" : 6:51', "«Да» : 6:51"),
        ("sv", '"ja"', "”ja”"),
        ("xx", 'a "b" c\'d', 'a "b" c’d'),
        ("en", 'a 5" screen, " alone and 6\' 2', 'a 5" screen, " alone and 6\' 2'),
    ],
)
def test_signs_are_those_of_the_language(language: str, plain: str, printed: str) -> None:
    """By hand: times, inches, lone signs, and quotes of languages outside the table stay."""
    assert typographic(plain, language) == printed


def test_translations_get_their_typography_and_references_keep_theirs() -> None:
    """The option applies to translations, not to the references they are compared with."""
    french = Tokenizer("fr", flags(typography=True))
    assert french.detokenize(["L'", "été", "!"]) == "L’été\u00a0!"
    assert french.reference("L'été !") == "L'été !"
