"""Mistakes that pass silently are found in real sentences; real sentences without any give no alarm."""

import pytest

from convs2s.text.corpus.mistakes import BLOCK, find_mistakes
from convs2s.text.languages import find_faults
from tests.corpus import pairs

TRAIN, TEST = pairs(1500), pairs(150, start=1500)
GERMAN_FIRST = [(target, source) for source, target in pairs(1900)]


@pytest.mark.parametrize("languages", [("en", "de"), ("xx", "yy"), ("en", "en")])
def test_a_clean_corpus_gives_no_warning(languages: tuple[str, str]) -> None:
    """Also in languages whose letters are unknown, and with one language, as for summaries."""
    found = find_mistakes(TRAIN, {"valid": [], "test": TEST}, languages)
    assert found == {"overlap": {"test": {"pairs": 0, "sources": 0, "of": 150}}, "warnings": []}


def test_swapped_sides_are_found_in_all_splits_in_one_and_in_a_part_of_training() -> None:
    """Each block of pairs is judged by the letters of the two languages."""
    swapped, clean = {"test": GERMAN_FIRST[1500:1650]}, {"test": TEST}
    said = "look swapped, from German to English"
    all_of_train, all_of_test = f"train: 1,500 pairs of 1,500 {said}", f"test: 150 pairs of 150 {said}"
    part = f"train: 1,000 pairs of 2,000 {said}"
    for train, held_out, languages, expected in [
        (GERMAN_FIRST[:1500], swapped, ("en", "de"), [all_of_train, all_of_test]),
        (TRAIN, swapped, ("en", "de"), [all_of_test]),
        (TRAIN, swapped, ("xx", "yy"), []),  # of unknown letters
        ([*TRAIN[:BLOCK], *GERMAN_FIRST[:BLOCK]], clean, ("en", "de"), [part]),
        (TRAIN, {"test": GERMAN_FIRST[:10]}, ("en", "de"), []),  # too few to be sure
    ]:  # fmt: skip
        assert find_mistakes(train, held_out, languages)["warnings"] == expected


def test_languages_that_are_alike_never_look_swapped() -> None:
    """Danish and Norwegian share their letters, and their frequencies almost."""
    found = find_mistakes(TRAIN, {}, ("da", "nb"))
    assert found["warnings"] == []


def test_copies_and_known_test_sentences_are_counted() -> None:
    """A pair counts if both sides are the same; otherwise its source does, if that is."""
    others = [(TRAIN[0][0], "anders"), ("other", TRAIN[1][1])]
    found = find_mistakes(TRAIN, {"valid": [*TRAIN[5:8], *others], "test": [*TEST, TRAIN[9]]}, ("en", "de"))
    assert found["overlap"] == {
        "valid": {"pairs": 3, "sources": 4, "of": 5},
        "test": {"pairs": 1, "sources": 1, "of": 151},
    }
    assert found["warnings"] == ["valid: 3 pairs of 5 are also in the training data"]
    copied = find_mistakes([*TRAIN, *((source, source) for source, _ in TRAIN)], {}, ("en", "de"))
    assert copied["warnings"] == ["train: 1,500 pairs of 3,000 have the same text on both sides"]


def test_codes_of_languages_are_checked() -> None:
    """A code of three letters has no rules in Moses' tokenizer if the language has a short one."""
    found = list(find_faults(["en", "yue", "xf", "gv", "deu", "tlh"]))
    assert [text.partition(":")[0] for text in found] == ["language xf", "language deu"]
    assert "its short code, de" in found[1]
