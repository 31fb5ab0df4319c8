"""Mistakes that pass silently are found in real sentences; real sentences without any give no alarm."""

from convs2s.text.corpus.mistakes import find_mistakes
from convs2s.text.languages import find_faults
from tests.corpus import pairs

TRAIN, TEST = pairs(1500), pairs(150, start=1500)


def test_a_clean_corpus_gives_no_warning() -> None:
    """A split without pairs has no overlap."""
    report = find_mistakes(TRAIN, {"valid": [], "test": TEST})
    assert report == {"overlap": {"test": {"pairs": 0, "sources": 0, "of": 150}}, "warnings": []}


def test_known_test_sentences_are_counted() -> None:
    """A pair counts if both sides are the same; otherwise its source does, if that is."""
    other_pairs = [(TRAIN[0][0], "anders"), ("other", TRAIN[1][1])]
    report = find_mistakes(TRAIN, {"valid": [*TRAIN[5:8], *other_pairs], "test": [*TEST, TRAIN[9]]})
    assert report["overlap"] == {
        "valid": {"pairs": 3, "sources": 4, "of": 5},
        "test": {"pairs": 1, "sources": 1, "of": 151},
    }
    assert report["warnings"] == ["valid: 3 pairs of 5 are also in the training data"]


def test_codes_of_languages_are_checked() -> None:
    """A code of three letters has no rules in Moses' tokenizer if the language has a short one."""
    faults = list(find_faults(["en", "yue", "xf", "gv", "deu", "tlh"]))
    assert [text.partition(":")[0] for text in faults] == ["language xf", "language deu"]
    assert "its short code, de" in faults[1]
