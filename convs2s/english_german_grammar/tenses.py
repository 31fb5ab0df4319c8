"""Tenses, and the times and frequencies that fit them."""

from convs2s.english_german_grammar import clauses as c
from convs2s.english_german_grammar.adverbials import FREQUENCY, PERFECT_FREQUENCY, duration, phrases, time
from convs2s.english_german_grammar.clauses import Clause
from convs2s.english_german_grammar.drawing import Bits, draw, spread
from convs2s.english_german_grammar.phrases import Phrase
from convs2s.english_german_grammar.verbs import Verb

PAST_TENSES = spread([
    (c.PAST, 66), (c.PAST_PROGRESSIVE, 6), (c.PLUPERFECT, 7), (c.COULD, 8), (c.HAD_TO, 7), (c.WANTED, 6),
])  # fmt: skip
PRESENT_TENSES = spread([
    (c.PRESENT, 42), (c.PROGRESSIVE, 10), (c.PERFECT, 15), (c.FUTURE, 11), (c.CAN, 6), (c.MUST, 6),
    (c.SHOULD, 3), (c.MAY, 2), (c.WANT, 4), (c.LIKE, 1),
])  # fmt: skip
# For beginnings, ends and states: "want" and "may" do not fit things that happen by themselves.
PLAIN_PAST = spread([(c.PAST, 90), (c.PLUPERFECT, 10)])
PLAIN_PRESENT = spread([(c.PRESENT, 64), (c.PERFECT, 14), (c.FUTURE, 22)])
STATE_PRESENT = spread([(c.PRESENT, 84), (c.FUTURE, 10), (c.PERFECT, 6)])
TIME_GROUPS = {
    c.PERFECT: "perfect",
    c.FUTURE: "future",
    c.PASSIVE_PERFECT: "perfect",
    c.PASSIVE_FUTURE: "future",
}
PROGRESSIVE_TIMES = phrases("now = jetzt; at the moment = im Moment = 0-0 1-0 2-1; today = heute")
PAST_SET = frozenset({c.PAST, c.PAST_PROGRESSIVE, c.PLUPERFECT, c.COULD, c.HAD_TO, c.WANTED, c.PASSIVE_PAST})


def draw_tense(bits: Bits, verb: Verb, past: bool, willing: bool) -> int:
    """Draw a tense; `willing` allows modals."""
    if willing:
        tense = draw(bits, PAST_TENSES if past else PRESENT_TENSES)
    elif verb.stative:
        tense = draw(bits, PLAIN_PAST if past else STATE_PRESENT)
    else:
        tense = draw(bits, PLAIN_PAST if past else PLAIN_PRESENT)
    if verb.stative and tense in {c.PROGRESSIVE, c.PAST_PROGRESSIVE}:
        return c.PAST if past else c.PRESENT
    return tense


def add_time(bits: Bits, clause: Clause) -> None:
    """Draw when or how often, to fit the tense."""
    roll = bits(8)
    if roll < 30 and clause.tense not in c.NO_SUPPORT and not clause.negated:
        perfect = clause.tense in {c.PERFECT, c.PLUPERFECT, c.PASSIVE_PERFECT}
        if clause.tense not in {c.PROGRESSIVE, c.PAST_PROGRESSIVE}:
            clause.frequency = draw(bits, PERFECT_FREQUENCY if perfect else FREQUENCY)
    elif roll < 118:
        when = draw_time(bits, clause.tense)
        if roll < 66:
            clause.front = when
        else:
            clause.time = when
    elif roll < 124 and clause.verb.frame in "IL" and clause.tense in {c.PAST, c.FUTURE, c.COULD}:
        clause.time = duration(bits)


def draw_time(bits: Bits, tense: int) -> Phrase:
    """Draw a time that fits the tense."""
    if tense == c.PROGRESSIVE:
        return draw(bits, PROGRESSIVE_TIMES)
    return time(bits, "past" if tense in PAST_SET else TIME_GROUPS.get(tense, "present"))
