from random import Random

from convs2s.english_german_grammar import clauses as c
from convs2s.english_german_grammar.clauses import Clause
from convs2s.english_german_grammar.tenses import add_time, draw_tense
from convs2s.english_german_grammar.verb_list import BE
from tests.english_german_grammar.lookup import verb


def test_states_are_never_progressive() -> None:
    """The grammar must not form *I am knowing her."""
    bits = Random(2).getrandbits
    for past in (True, False):
        tenses = {draw_tense(bits, verb("know", "T"), past, willing=True) for _ in range(500)}
        assert not tenses & {c.PROGRESSIVE, c.PAST_PROGRESSIVE}
        assert c.PROGRESSIVE not in {draw_tense(bits, BE, past, willing=False) for _ in range(200)}


def test_perfect_goes_with_its_own_frequencies() -> None:
    """It forms "he has already slept", but not *he has usually slept."""
    bits = Random(7).getrandbits
    seen = set()
    for _ in range(800):
        clause = Clause(verb("sleep", "I"), c.PERFECT)
        add_time(bits, clause)
        assert not (clause.frequency.english and clause.time.english)
        seen.add(" ".join(clause.frequency.english))
    assert {"already", "never"} <= seen
    assert "usually" not in seen
