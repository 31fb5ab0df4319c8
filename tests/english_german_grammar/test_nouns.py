import pytest

from convs2s.english_german_grammar.nouns import Modifier, compound, english_plural, parse_noun, umlaut
from tests.english_german_grammar.lookup import noun


@pytest.mark.parametrize(
    ("english", "singular", "plural"),
    [
        ("man", "Mann Mann Mann Mannes", "Männer Männer Männern Männer"),
        ("student", "Student Studenten Studenten Studenten", "Studenten Studenten Studenten Studenten"),
        ("city", "Stadt Stadt Stadt Stadt", "Städte Städte Städten Städte"),
        ("house", "Haus Haus Haus Hauses", "Häuser Häuser Häusern Häuser"),
        ("girl", "Mädchen Mädchen Mädchen Mädchens", "Mädchen Mädchen Mädchen Mädchen"),
        ("car", "Auto Auto Auto Autos", "Autos Autos Autos Autos"),
        ("museum", "Museum Museum Museum Museums", "Museen Museen Museen Museen"),
        ("result", "Ergebnis Ergebnis Ergebnis Ergebnisses", "Ergebnisse Ergebnisse Ergebnissen Ergebnisse"),
        ("apple", "Apfel Apfel Apfel Apfels", "Äpfel Äpfel Äpfeln Äpfel"),
        ("boss", "Chef Chef Chef Chefs", "Chefs Chefs Chefs Chefs"),
        ("cactus", "Kaktus Kaktus Kaktus Kaktus", "Kakteen Kakteen Kakteen Kakteen"),
    ],
)
def test_german_declension(english: str, singular: str, plural: str) -> None:
    """Forms are those of any German grammar: strong, weak, feminine, with umlaut, loan words."""
    assert [" ".join(forms) for forms in noun(english).german] == [singular, plural]


def test_umlaut_falls_on_the_last_back_vowel() -> None:
    """The diphthong au changes as a whole: Haus, Häuser."""
    assert [umlaut(word) for word in ("Haus", "Apfelbaum", "Vater", "Stuhl")] == [
        "Häus",
        "Apfelbäum",
        "Väter",
        "Stühl",
    ]


def test_english_plurals() -> None:
    """Irregular plurals are listed; regular ones follow spelling rules."""
    assert [english_plural(word) for word in ("city", "day", "box", "church")] == [
        "cities",
        "days",
        "boxes",
        "churches",
    ]
    assert parse_noun("child/children Kind n er", "person").english == (("child",), ("children",))
    assert parse_noun("apple_tree Baum m ^e", "plant").english == (("apple", "tree"), ("apple", "trees"))


def test_compound_is_one_word_and_inflects_as_its_head() -> None:
    """Several English words are one in German; the linking element belongs to the modifier."""
    made = compound((Modifier("city", "Stadt"), Modifier("library", "Bibliotheks")), noun("door"))
    assert made.english == (("city", "library", "door"), ("city", "library", "doors"))
    assert made.german[0][0] == "Stadtbibliothekstür"
    assert made.german[1][2] == "Stadtbibliothekstüren"
    assert made.gender == noun("door").gender
