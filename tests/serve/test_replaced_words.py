"""Positions of words in detokenized text."""

from convs2s.serve.insight import find_spans


def test_words_are_found_in_order_whatever_the_spaces_and_case() -> None:
    """The second `die` must not match the first; detokenization removes spaces, truecasing changes case."""
    text = "Die Frau, die Emma-Lea kennt."
    found = find_spans(text, ["die", "Frau", ",", "die", "Emma-Lea", "kennt", "."])
    assert [text[start:end] for start, end in found] == ["Die", "Frau", ",", "die", "Emma-Lea", "kennt", "."]
    assert found[3] == (10, 13)


def test_a_word_that_detokenization_changed_gets_an_empty_span() -> None:
    """The span lies between its neighbors; characters special in regular expressions match literally."""
    assert find_spans("a (b)*", ["a", "gone", "(b)*"]) == [(0, 1), (1, 1), (2, 6)]
