from random import Random

from convs2s.english_german_grammar import phrases as p
from convs2s.english_german_grammar import sentences as s
from convs2s.english_german_grammar.drawing import Bits
from tests.english_german_grammar.lookup import texts


def many(kind: object, count: int = 200, seed: int = 1) -> list[p.Phrase]:
    assert callable(kind)
    bits: Bits = Random(seed).getrandbits
    return [kind(bits) for _ in range(count)]


def test_each_kind_ends_with_its_mark() -> None:
    """Questions end with a question mark, requests may end with "!", all others with a period."""
    marks = {kind: {words.english[-1][-1] for words in many(kind, 60)} for kind in set(s.KINDS)}
    questions = {s.yes_no_question, s.adverb_question, s.object_question, s.subject_question}
    for kind, found in marks.items():
        wanted = {"?"} if kind in questions else {".", "!"} if kind is s.request else {"."}
        assert found == (wanted if kind is not s.quotation else {".", '"'})


def test_both_sides_end_alike() -> None:
    """The final marks are translations of each other."""
    for kind in set(s.KINDS):
        for words in many(kind, 60):
            assert words.english[-1] == words.german[-1]
            assert (len(words.english) - 1, len(words.german) - 1) in words.links


def test_dependent_clauses_are_set_off_by_a_german_comma() -> None:
    """The German words dass, weil and ob follow a comma; English "that" does not."""
    for kind, word in ((s.that_clause, "dass"), (s.whether_clause, "ob")):
        for words in many(kind):
            assert list(words.german)[list(words.german).index(word) - 1] == "\x01,"


def test_main_clause_after_a_dependent_one_begins_with_its_verb() -> None:
    """As in "Wenn es regnet, schläft der Hund": English starts with the subject, German with the verb."""
    for words in many(s.subordinate_first):
        assert "\x01," in words.english
        comma = next(b for a, b in words.links if words.english[a] == words.german[b] == "\x01,")
        assert words.german[comma + 1][0].islower()


def test_dropped_that_keeps_dass() -> None:
    """English may omit "that", as in "he said he slept"; German keeps dass, which has no link."""
    dropped = [words for words in many(s.that_clause, 400) if "that" not in words.english]
    assert dropped
    for words in dropped:
        position = list(words.german).index("dass")
        assert position not in {b for _, b in words.links}


def test_existence_agrees_in_english_only() -> None:
    """Both "there is" and "there are" are "es gibt"; a place in front inverts the German words."""
    verbs = {"is": "gibt", "are": "gibt", "was": "gab", "were": "gab"}
    for words in many(s.existence):
        english, german = list(words.english), list(words.german)
        finite = verbs[english[english.index("there") + 1]]
        place_first = english[0] != "there"
        assert german.index("es") - german.index(finite) == (1 if place_first else -1)


def test_quotation_marks_pair_up_and_cross_the_comma() -> None:
    """The comma is inside the quotation marks in English, outside in German."""
    for words in many(s.quotation):
        english, german = texts(words)
        assert english.count('"') == german.count('"') == 2
        assert (',"' in english) == ('",' in german)
        assert '",' not in english
        assert ',"' not in german
        for a, b in words.links:
            if words.english[a] == '\x01"':
                assert words.german[b] == '\x01"'


def test_request_is_formal() -> None:
    """In German, "Please open" is "Bitte öffnen Sie"."""
    for words in many(s.request, 50):
        english, german = texts(words)
        assert english.startswith("Please ")
        assert german.startswith("Bitte ")
        assert words.german[2] == "Sie"


def test_purpose_is_um_zu() -> None:
    """The clause begins with um, and its infinitive with zu comes last."""
    for words in many(s.purpose_clause, 100):
        assert "um" in words.german
        assert "zu" in words.german[-3] or "zu" in words.german[-2]
