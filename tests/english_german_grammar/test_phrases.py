from convs2s.english_german_grammar.phrases import (
    COMMA,
    GERMAN_COMMA,
    LEFT,
    PERIOD,
    RIGHT,
    chain,
    phrase,
    text_of,
    weave,
)


def test_links_of_unequal_sides_end_on_the_last_token() -> None:
    """In German, "the day before yesterday" is one word."""
    assert phrase("the day before yesterday", "vorgestern").links == ((0, 0), (1, 0), (2, 0), (3, 0))


def test_weave_orders_each_language_by_itself() -> None:
    """When tokens move, their links move with them."""
    parts = (phrase("yesterday", "gestern"), phrase("he", "er"), phrase("slept", "schlief"))
    words = weave(parts, (1, 2, 0), (0, 2, 1), [(2, 0, 1, 0)])
    assert list(words.english) == ["he", "slept", "yesterday"]
    assert list(words.german) == ["gestern", "schlief", "er"]
    assert sorted(words.links) == [(0, 2), (1, 1), (1, 2), (2, 0)]


def test_closing_comma_gives_way_to_a_mark() -> None:
    """German closes a relative clause with a comma, but never writes two marks in a row."""
    clause = chain(
        phrase("the man", "der Mann"), GERMAN_COMMA, phrase("who slept", "der schlief"), GERMAN_COMMA
    )
    words = chain(clause, PERIOD)
    assert text_of(words.german) == "Der Mann, der schlief."
    assert words.links[-1] == (4, 5)
    assert text_of(chain(clause, COMMA, phrase("but", "aber")).german) == "Der Mann, der schlief, aber"
    assert text_of(weave((clause, PERIOD), (0, 1), (0, 1)).german) == "Der Mann, der schlief."


def test_text_is_glued_by_its_marks() -> None:
    """No markers are left, and the first letter is a capital even after a quotation mark."""
    tokens = ['"' + RIGHT, "äpfel", LEFT + ",", "8", LEFT + ":" + RIGHT, "30", LEFT + '"']
    assert text_of(tokens) == '"Äpfel, 8:30"'
