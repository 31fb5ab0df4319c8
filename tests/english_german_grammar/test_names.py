from random import Random

from convs2s.english_german_grammar.names import SURNAME_ENDS, invented, person, town


def test_names_are_copied() -> None:
    """Replacing an unknown word with its source word is right for names of people."""
    bits = Random(1).getrandbits
    for _ in range(500):
        name = person(bits)
        assert name.english[-1] == name.german[-1]
        assert {word[0].isupper() for word in name.english} == {True}


def test_some_towns_have_a_german_name() -> None:
    """München is translated, invented towns are copied; both kinds occur."""
    bits = Random(2).getrandbits
    towns = {place.english[0]: place.german[0] for place in (town(bits) for _ in range(3000))}
    assert towns["Munich"] == "München"
    assert towns["Hamburg"] == "Hamburg"
    copied = sum(english == german for english, german in towns.items())
    assert copied > 500


def test_invented_names_are_an_open_class() -> None:
    """Nearly all of 2,000 draws differ, so names in the test set are unseen in training."""
    bits = Random(3).getrandbits
    assert len({invented(bits, SURNAME_ENDS) for _ in range(2000)}) > 1800
