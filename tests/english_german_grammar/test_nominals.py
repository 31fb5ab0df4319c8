from random import Random

import pytest

from convs2s.english_german_grammar import nominals as n
from convs2s.english_german_grammar.nouns import ACCUSATIVE, DATIVE, NOMINATIVE
from convs2s.english_german_grammar.phrases import Phrase
from tests.english_german_grammar.lookup import linked, noun


def test_two_nouns_are_linked_with_the_genitive() -> None:
    """The German of "of the" is "des"."""
    bits = Random(1).getrandbits
    owned = Phrase(["the", "roof"], ["das", "Dach"], [(0, 0), (1, 1)])
    for _ in range(50):
        made = n.with_genitive(bits, owned)
        assert list(made.english[:3]) == ["the", "roof", "of"]
        assert (2, 2) in made.links
        assert made.german[2] in {"des", "der"} or made.german[2].endswith(("es", "er"))
        assert {a for a, _ in made.links} == set(range(len(made.english)))


def test_herr_takes_an_ending_outside_the_nominative() -> None:
    """It is "Herr X", but "ich sehe Herrn X"."""
    bits = Random(2).getrandbits
    accusative = [n.named(bits, ACCUSATIVE) for _ in range(300)]
    assert {name.german[0] for name in accusative if name.english[0] == "Mr."} == {"Herrn"}
    nominative = [n.named(bits, NOMINATIVE) for _ in range(300)]
    assert {name.german[0] for name in nominative if name.english[0] == "Mr."} == {"Herr"}


def test_object_pronouns_are_light_and_in_their_case() -> None:
    """German puts them before everything else: "him" is "ihn" or "ihm"."""
    bits = Random(3).getrandbits
    for case, german in ((ACCUSATIVE, "ihn"), (DATIVE, "ihm")):
        drawn = [n.an_object(bits, ("person",), case, None, light=True) for _ in range(400)]
        him = {(item.german[0], item.pronoun) for item in drawn if list(item.english) == ["him"]}
        assert him == {(german, True)}
        heavy = [n.an_object(bits, ("person",), case, None, light=False) for _ in range(400)]
        assert not any(item.pronoun for item in heavy)


def test_negated_nominal_says_kein() -> None:
    """In German, "not a dog" and "not any dogs" are "keinen Hund" and "keine Hunde"."""
    bits = Random(4).getrandbits
    for _ in range(100):
        made = n.negated_nominal(bits, ("animal", "drink"))
        assert made.german[0].startswith("kein")
        assert made.english[0] in {"a", "an", "any"}
        assert (0, 0) in made.links


@pytest.mark.parametrize(
    ("english", "prepositions"),
    [
        ("kitchen", ("in", "in")),
        ("station", ("at", "an")),
        ("island", ("on", "auf")),
        ("market", ("at", "auf")),
    ],
)
def test_places_choose_their_preposition(english: str, prepositions: tuple[str, str]) -> None:
    """Compare "in der Küche", "am Bahnhof" and "auf der Insel"."""
    assert n.preposition_of(noun(english)) == prepositions


def test_location_is_dative_and_direction_may_be_accusative() -> None:
    """It is "in der Stadt" but "in die Stadt": only directions can be accusative."""
    bits = Random(5).getrandbits
    where = {item.german[0] + " " + item.german[1] for item in (n.location(bits) for _ in range(500))}
    assert "in der" in where
    assert not any(start in where for start in ("in die", "in den", "in das"))
    to = {item.german[0] + " " + item.german[1] for item in (n.direction(bits) for _ in range(500))}
    assert "in die" in to
    assert any(start.startswith("nach ") for start in to)
    assert any(start.startswith("zum ") for start in to)


def test_new_compounds_are_drawn() -> None:
    """Things, texts and ideas can be heads; most compounds drawn are rare."""
    bits = Random(6).getrandbits
    drawn = [n.draw_noun(bits, ("thing", "document")) for _ in range(4000)]
    made = [item.german[0][0] for item in drawn if len(item.english[0]) > 1]
    assert 300 < len(made) < 800
    assert len(set(made)) > 250


def test_every_word_of_a_noun_phrase_is_linked() -> None:
    """No word in it is left untranslated on either side."""
    bits = Random(7).getrandbits
    for _ in range(500):
        made = n.nominal(bits, ("thing", "person", "stuff"), DATIVE)
        assert {a for a, _ in made.links} == set(range(len(made.english)))
        assert {b for _, b in made.links} == set(range(len(made.german)))
        assert len(linked(made)) <= len(made.links)
