"""Headings of tables, and texts that only look like them."""

import pytest

from convs2s.text.headings import OWN_NAMES, is_heading
from convs2s.text.languages import NAMES


@pytest.mark.parametrize(
    "row",
    [
        "en de English/German", "en de German/English", "en de ENGLISH:/GERMAN:",
        "en de 'English'/\"German\"",
        "en de English (US)/German (formal)", "en de English text/German text", "en de Englisch/Deutsch",
        "de fr Deutsch/Français", "en fr anglais/français", "en es Inglés/Español", "en ja 英語/日本語",
        "en zh 英文/中文", "en nb English/Norwegian Bokmål", "en de en/de", "en de EN-US/de_DE",
        "en de eng/deu",
        "en de source_en/target_de", "en de sentence_en/sentence_de", "en de text/translation",
        "en de src/tgt", "en de source text/target text", "en de Quelltext/Zieltext", "de fr Source/Cible",
        "en de Source/German", "en de Text/Deutsch", "en en article/summary", "en en sentence1/sentence2",
        "en de Original/Übersetzung", "xx yyy xx/yyy",
    ],
)  # fmt: skip
def test_a_heading_is_recognized(row: str) -> None:
    """It would be taken as a translation, in every epoch, or as a test sentence."""
    source_language, target_language, cells = row.split(" ", 2)
    source, target = cells.split("/")
    assert is_heading((source, target), (source_language, target_language))


@pytest.mark.parametrize(
    "row",
    [
        "en de English/Englisch", "en de German/Deutsch", "en de English/English", "en de Source/Quelle",
        "en de Translation/Übersetzung", "en de Text/Text", "en de Original/Original", "en fr Phrase/Phrase",
        "en de German shepherds/Deutsche Schäferhunde", "en de I speak German/Ich spreche Deutsch",
        "en de English is easy/Englisch ist einfach", "en de English./German.", "en de Hi/Hey", "en de /",
        "en de English/", "en de 1/2", "es de de nada/es geht", "en it it is/è", "fr en en avant/onward",
        "en de English-German/Englisch-Deutsch", "en de Sentence 1/Sentence 1", "en de Word/Wort",
        "en de My friend speaks English well/Seine Freundin spricht Deutsch gut",
        "en de The English and the German words/Die englischen und die deutschen",
    ],
)  # fmt: skip
def test_a_pair_of_words_is_no_heading(row: str) -> None:
    """A phrase book or the texts of a program have such pairs; a warning of each would not be heard."""
    source_language, target_language, cells = row.split(" ", 2)
    source, target = cells.split("/")
    assert not is_heading((source, target), (source_language, target_language))


def test_each_name_of_a_language_is_recognized() -> None:
    """Letters that words are not made of, or a wrong code, would hide one."""
    assert OWN_NAMES.keys() <= NAMES.keys()
    for code, names in OWN_NAMES.items():
        own, english = (part.split() for part in names.split("/"))
        other = "de" if code == "en" else "en"
        assert all(is_heading((other, name), (other, code)) for name in own), code
        assert all(is_heading((name, code), ("en", code)) for name in english) or code == "en", code
