import pytest

from convs2s.english_german_grammar import determiners as d
from convs2s.english_german_grammar.nouns import ACCUSATIVE, DATIVE, GENITIVE, NOMINATIVE, Modifier, compound
from tests.english_german_grammar.lookup import adjective, noun, np

OLD = adjective("old", "person").positive


@pytest.mark.parametrize(
    ("first", "english", "number", "german"),
    [
        (d.THE, "man", 0, "der alte Mann / den alten Mann / dem alten Mann / des alten Mannes"),
        (d.THE, "woman", 0, "die alte Frau / die alte Frau / der alten Frau / der alten Frau"),
        (d.THE, "child", 0, "das alte Kind / das alte Kind / dem alten Kind / des alten Kindes"),
        (d.THE, "child", 1, "die alten Kinder / die alten Kinder / den alten Kindern / der alten Kinder"),
        (d.A, "man", 0, "ein alter Mann / einen alten Mann / einem alten Mann / eines alten Mannes"),
        (d.A, "woman", 0, "eine alte Frau / eine alte Frau / einer alten Frau / einer alten Frau"),
        (d.A, "child", 0, "ein altes Kind / ein altes Kind / einem alten Kind / eines alten Kindes"),
        (
            d.MY,
            "child",
            1,
            "meine alten Kinder / meine alten Kinder / meinen alten Kindern / meiner alten Kinder",
        ),
        (d.NOT_A, "man", 0, "kein alter Mann / keinen alten Mann / keinem alten Mann / keines alten Mannes"),
        (d.THIS, "man", 0, "dieser alte Mann / diesen alten Mann / diesem alten Mann / dieses alten Mannes"),
        (d.BARE, "child", 1, "alte Kinder / alte Kinder / alten Kindern / alter Kinder"),
        (
            d.MANY,
            "child",
            1,
            "viele alte Kinder / viele alte Kinder / vielen alten Kindern / vieler alter Kinder",
        ),
        (
            d.ALL,
            "child",
            1,
            "alle alten Kinder / alle alten Kinder / allen alten Kindern / aller alten Kinder",
        ),
    ],
)
def test_agreement(first: d.Determiner, english: str, number: int, german: str) -> None:
    """Article, adjective and noun agree in four cases, with weak, mixed and strong endings."""
    made = [d.noun_phrase(noun(english), case, number, first, (OLD,)) for case in range(4)]
    assert " / ".join(" ".join(phrase.german) for phrase in made) == german


def test_strong_endings_without_article() -> None:
    """With mass nouns of all genders, the adjective has the endings of the article."""
    fresh = adjective("fresh", "food").positive
    made = [d.noun_phrase(noun(word), DATIVE, 0, d.BARE, (fresh,)) for word in ("coffee", "milk", "water")]
    assert [" ".join(phrase.german) for phrase in made] == [
        "frischem Kaffee",
        "frischer Milch",
        "frischem Wasser",
    ]


def test_article_before_vowels() -> None:
    """The choice of "an" depends on sound, not on the letter."""
    assert [d.article_before(word) for word in ("apple", "house", "hour", "uniform", "old")] == [
        "an", "a", "an", "a", "an",
    ]  # fmt: skip
    assert np("apple", NOMINATIVE, first=d.A).english[0] == "an"


def test_both_words_of_a_compound_are_linked_to_the_german_word() -> None:
    """Both "kitchen" and "table" are truly aligned with "Küchentisch"."""
    table = compound((Modifier("kitchen", "Küchen"),), noun("table"))
    phrase = d.noun_phrase(table, ACCUSATIVE, 0, d.THE, (OLD,))
    assert list(phrase.english) == ["the", "old", "kitchen", "table"]
    assert list(phrase.german) == ["den", "alten", "Küchentisch"]
    assert sorted(phrase.links) == [(0, 0), (1, 1), (2, 2), (3, 2)]


def test_owner_is_linked_with_its_apostrophe() -> None:
    """The tokenizer splits off 's; in German it is one word."""
    phrase = np("house", NOMINATIVE, first=d.possessor("Anna"))
    assert list(phrase.english) == ["Anna", "\x01's", "house"]
    assert list(phrase.german) == ["Annas", "Haus"]
    assert sorted(phrase.links) == [(0, 0), (1, 0), (2, 1)]


def test_comparative_of_two_words() -> None:
    """In German, "more expensive" is one adjective, with its ending."""
    phrase = d.noun_phrase(
        noun("lamp"), DATIVE, 0, d.A, (adjective("expensive", "device").comparative or OLD,)
    )
    assert list(phrase.english) == ["a", "more", "expensive", "lamp"]
    assert list(phrase.german) == ["einer", "teureren", "Lampe"]
    assert sorted(phrase.links) == [(0, 0), (1, 1), (2, 1), (3, 2)]


def test_preposition_merges_with_the_article() -> None:
    """The German for "in the" is "im", linked with both words, or "in der", which stays two words."""
    merged = d.prepositional("in", "in", np("garden", DATIVE))
    assert list(merged.german) == ["im", "Garten"]
    assert sorted(merged.links) == [(0, 0), (1, 0), (2, 1)]
    kept = d.prepositional("in front of", "vor", np("school", DATIVE))
    assert list(kept.german) == ["vor", "der", "Schule"]
    assert sorted(kept.links) == [(0, 0), (1, 0), (2, 0), (3, 1), (4, 2)]
    assert d.prepositional("to", "zu", np("school", DATIVE)).german[0] == "zur"
    assert d.prepositional("to", "zu", np("station", DATIVE)).german[0] == "zum"


def test_number_decides_on_the_verb_form() -> None:
    """Slot 5 is "they"; slot 2 is "he", "she" or "it"."""
    assert np("dog", NOMINATIVE, 1).slot == 5
    assert np("dog", GENITIVE).slot == 2
