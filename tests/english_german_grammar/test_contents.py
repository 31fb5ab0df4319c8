from random import Random

from convs2s.english_german_grammar import clauses as c
from convs2s.english_german_grammar import contents as t
from convs2s.english_german_grammar.tenses import PAST_SET, TIME_GROUPS
from tests.english_german_grammar.lookup import noun

FORBIDDEN = {
    "past": ("tomorrow", "next week", "every day", "now", "at the moment"),
    "future": ("yesterday", "last week", "ago"),
}


def test_relative_pronoun_agrees_with_its_noun() -> None:
    """It has the noun's gender and number and the clause's case; commas enclose the German clause."""
    bits = Random(1).getrandbits
    for english, number, pronouns in (
        ("man", 0, {"der", "den"}), ("woman", 0, {"die"}), ("child", 0, {"das"}), ("child", 1, {"die"}),
    ):  # fmt: skip
        clauses = [t.relative_clause(bits, noun(english), number) for _ in range(80)]
        assert {clause.german[1] for clause in clauses} == pronouns
        assert {clause.english[0] for clause in clauses} == {"who", "that"}
        assert all(clause.german[0] == clause.german[-1] == "\x01," for clause in clauses)


def test_time_fits_the_tense_of_the_clause() -> None:
    """The grammar must not form *He will sleep yesterday."""
    bits = Random(3).getrandbits
    for _ in range(1500):
        clause = t.draw_clause(bits, past=bits(1) == 0)
        when = " ".join([*clause.front.english, *clause.time.english])
        group = "past" if clause.tense in PAST_SET else TIME_GROUPS.get(clause.tense, "")
        assert not any(word in when for word in FORBIDDEN.get(group, ()))


def test_tenses_without_an_auxiliary_form_no_questions() -> None:
    """Without an English auxiliary, the question would be *Wants she to sleep?"""
    bits = Random(4).getrandbits
    drawn = [t.draw_clause(bits, past=bits(1) == 0, asking=True) for _ in range(800)]
    assert not {clause.tense for clause in drawn} & c.NO_SUPPORT


def test_first_person_is_not_its_own_object() -> None:
    """The grammar must not form *I saw me."""
    bits = Random(6).getrandbits
    for _ in range(3000):
        clause = t.draw_clause(bits, past=True)
        objects = {*clause.accusative.english, *clause.dative.english, *clause.complement.english}
        pronouns = {"me", "us", "you"} if clause.subject.slot in {0, 1, 3, 6} else set()
        assert not pronouns & objects
