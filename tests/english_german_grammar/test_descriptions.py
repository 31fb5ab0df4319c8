from random import Random

from convs2s.english_german_grammar import clauses as c
from convs2s.english_german_grammar.adjectives import ATTRIBUTIVE_ONLY
from convs2s.english_german_grammar.clauses import arrange
from convs2s.english_german_grammar.descriptions import draw_predicate, measured, predicate, weather
from convs2s.english_german_grammar.phrases import text_of


def test_weather_has_no_subject_but_it() -> None:
    """In German, "it rains" is "es regnet"."""
    bits = Random(5).getrandbits
    made = {text_of(arrange(weather(bits, past=True), c.SECOND).german) for _ in range(300)}
    assert "Es regnete" in made


def test_some_adjectives_never_follow_is() -> None:
    """The grammar must not form *die Sitzung ist letzt."""
    bits = Random(8).getrandbits
    stems = {draw_predicate(bits, "event").positive.stem for _ in range(500)}
    assert len(stems) > 10
    assert not stems & ATTRIBUTIVE_ONLY


def test_comparison_is_with_als_and_the_nominative() -> None:
    """In German, "older than the man" is "älter als der Mann"."""
    bits = Random(9).getrandbits
    drawn = [predicate(bits, "person") for _ in range(400)]
    compared = [item for item in drawn if "than" in item.english]
    assert compared
    for item in compared:
        position = list(item.german).index("als")
        assert item.german[position - 1].endswith("er")
        assert item.german[position + 1] not in {"den", "dem", "des"}


def test_measures_swap_point_and_comma() -> None:
    """Prices, weights and distances are in digits: 12.50 euros is 12,50 Euro."""
    bits = Random(10).getrandbits
    swap = str.maketrans(".,", ",.")
    for _ in range(100):
        complement = measured(bits, past=True).complement
        assert complement.german[0] == complement.english[0].translate(swap)
