"""Drawing descriptions: what someone or something is like, costs or measures, and the weather."""

from convs2s.english_german_grammar import clauses as c
from convs2s.english_german_grammar import determiners as d
from convs2s.english_german_grammar import nominals as n
from convs2s.english_german_grammar.adjectives import ATTRIBUTIVE_ONLY, Adjective, Gradable
from convs2s.english_german_grammar.adverbials import phrases
from convs2s.english_german_grammar.clauses import Clause
from convs2s.english_german_grammar.drawing import Bits, chance, draw, listed, spread, zipf
from convs2s.english_german_grammar.nouns import NOMINATIVE
from convs2s.english_german_grammar.numerals import decimal, price, thousands
from convs2s.english_german_grammar.phrases import Phrase, chain, phrase
from convs2s.english_german_grammar.tenses import PLAIN_PAST, PLAIN_PRESENT, add_time, draw_tense, draw_time
from convs2s.english_german_grammar.verb_list import BE, COST, HAVE, WEATHER, WEIGH

DESCRIBED = zipf(
    listed("thing device vehicle clothing openable document building food idea event animal place plant"),
    offset=10,
)
DEGREES = phrases("very = sehr; too = zu; quite = ziemlich; extremely = äußerst; surprisingly = überraschend")
THE_OR_THIS = spread([(d.THE, 70), (d.THIS, 30)])
IT = phrase("it", "es", pronoun=True)
WEATHER_TABLE = zipf(WEATHER)


def describing(bits: Bits, past: bool) -> Clause:
    """Draw what someone or something is like, is, costs or measures."""
    roll = bits(8)
    if roll < 40:
        return measured(bits, past)
    clause = Clause(BE, draw_tense(bits, BE, past, willing=False))
    clause.negated, clause.contracted = chance(bits, 10), chance(bits, 35)
    if roll < 120:
        clause.subject = n.subject(bits, ("person",), None)
        kind = "person"
    else:
        kind = draw(bits, DESCRIBED)
        clause.subject = n.nominal(bits, (kind,), NOMINATIVE, definite=True)
    if roll < 62 and clause.subject.slot in {0, 1, 2}:
        noun = n.draw_noun(bits, ("person",))
        adjectives = (draw_predicate(bits, "person").positive,) if chance(bits, 70) else ()
        clause.complement = d.noun_phrase(noun, NOMINATIVE, 0, d.A if adjectives else d.THE, adjectives)
    else:
        clause.complement = predicate(bits, kind)
    add_time(bits, clause)
    return clause


def draw_predicate(bits: Bits, kind: str) -> Gradable:
    """Draw an adjective that can follow "is"."""
    while True:
        gradable = draw(bits, n.adjective_table(kind))
        if gradable.positive.stem not in ATTRIBUTIVE_ONLY:
            return gradable


def predicate(bits: Bits, kind: str) -> Phrase:
    """Draw "very old" or "older than the house"."""
    gradable = draw_predicate(bits, kind)
    if gradable.comparative and chance(bits, 25):
        other = n.nominal(bits, (kind,), NOMINATIVE, definite=True)
        return chain(adjective_phrase(gradable.comparative), phrase("than", "als"), other)
    word = adjective_phrase(gradable.positive)
    if gradable.comparative and chance(bits, 30):
        return chain(draw(bits, DEGREES), word)
    return word


def adjective_phrase(adjective: Adjective) -> Phrase:
    """Return an adjective without ending, as after "is"."""
    words = adjective.english
    return Phrase(words, (adjective.predicate,), tuple((i, 0) for i in range(len(words))))


def measured(bits: Bits, past: bool) -> Clause:
    """Draw a price, a length, a weight or a number of inhabitants, all in digits."""
    kind = bits(2)
    tense = c.PAST if past else c.PRESENT
    if kind == 0:
        english, german = price(bits)
        what = n.nominal(bits, ("thing", "clothing", "device"), NOMINATIVE, definite=True)
        return Clause(COST, tense, what, complement=phrase(f"{english} euros", f"{german} Euro"))
    if kind == 1:
        english, german = thousands(bits)
        what = d.noun_phrase(n.draw_noun(bits, ("city",)), NOMINATIVE, 0, draw(bits, THE_OR_THIS))
        return Clause(HAVE, tense, what, complement=phrase(f"{english} inhabitants", f"{german} Einwohner"))
    english, german = decimal(bits)
    if kind == 2:
        what = n.nominal(bits, ("thing", "device"), NOMINATIVE, definite=True)
        return Clause(WEIGH, tense, what, complement=phrase(f"{english} kilograms", f"{german} Kilogramm"))
    what = d.noun_phrase(n.draw_noun(bits, ("spot",)), NOMINATIVE, 0, draw(bits, THE_OR_THIS))
    length = phrase(f"{english} kilometers away", f"{german} Kilometer entfernt")
    return Clause(BE, tense, what, complement=length)


def weather(bits: Bits, past: bool) -> Clause:
    """Draw "it rains" and the like."""
    tense = draw(bits, PLAIN_PAST if past else PLAIN_PRESENT)
    clause = Clause(draw(bits, WEATHER_TABLE), tense, IT)
    if chance(bits, 50):
        clause.time = draw_time(bits, tense)
    return clause
