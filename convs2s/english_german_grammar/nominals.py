"""Drawing noun phrases: subjects, objects and places, with adjectives, owners and relative clauses."""

from collections.abc import Callable
from functools import lru_cache

from convs2s.english_german_grammar import determiners as d
from convs2s.english_german_grammar.adjectives import ADJECTIVES, Adjective, Gradable
from convs2s.english_german_grammar.drawing import Bits, chance, draw, listed, spread, zipf
from convs2s.english_german_grammar.names import FIRST_NAMES, person, town
from convs2s.english_german_grammar.noun_list import COMPOUND_MODIFIERS, HEADS, NOUNS, ROLES
from convs2s.english_german_grammar.nouns import ACCUSATIVE, DATIVE, GENITIVE, NOMINATIVE, Noun, compound
from convs2s.english_german_grammar.numerals import number_words, thousands
from convs2s.english_german_grammar.phrases import Phrase, phrase

RelativeClause = Callable[[Bits, Noun, int], Phrase]
"""Draws a relative clause on a noun of a number; German commas on both sides of it."""

SUBJECT_PRONOUNS = spread([
    (phrase("I", "ich", slot=0, pronoun=True), 22), (phrase("he", "er", slot=2, pronoun=True), 22),
    (phrase("she", "sie", slot=2, pronoun=True), 20), (phrase("we", "wir", slot=3, pronoun=True), 14),
    (phrase("they", "sie", slot=5, pronoun=True), 12), (phrase("you", "du", slot=1, pronoun=True), 11),
    (phrase("you", "Sie", slot=6, pronoun=True), 2), (phrase("someone", "jemand", slot=2), 2),
    (phrase("everyone", "jeder", slot=2), 2),
])  # fmt: skip
# English, accusative, dative
OBJECT_PRONOUNS = spread([
    (("me", "mich", "mir"), 20), (("him", "ihn", "ihm"), 22), (("her", "sie", "ihr"), 20),
    (("us", "uns", "uns"), 14), (("them", "sie", "ihnen"), 14), (("you", "dich", "dir"), 10),
])  # fmt: skip
OWNERS = zipf([d.MY, d.HIS, d.HER, d.OUR, d.THEIR, d.YOUR])
POSSESSORS = zipf([d.possessor(name) for name in FIRST_NAMES])
OWNED, POSSESSED, COUNTED, LARGE = range(4)
"""Determiners that are drawn separately."""
SINGULAR: tuple[d.Determiner | int, ...] = spread(
    [(d.THE, 52), (d.A, 20), (OWNED, 14), (d.THIS, 6), (d.EVERY, 3), (POSSESSED, 5)]
)
PLURALS: tuple[d.Determiner | int, ...] = spread([
    (d.THE, 40), (d.BARE, 8), (OWNED, 10), (d.THIS, 6), (COUNTED, 12), (d.MANY, 7), (d.SOME, 6), (d.ALL, 4),
    (d.SEVERAL, 3), (d.FEW, 2), (d.BOTH, 2), (LARGE, 1),
])  # fmt: skip
UNCOUNTED: tuple[d.Determiner | int, ...] = spread([(d.BARE, 45), (d.THE, 40), (OWNED, 15)])
DEFINITE: tuple[d.Determiner | int, ...] = spread([(d.THE, 70), (OWNED, 18), (d.THIS, 8), (POSSESSED, 4)])
ONE_KIND: tuple[d.Determiner | int, ...] = (d.A,) * len(DEFINITE)
MANY_KINDS: tuple[d.Determiner | int, ...] = spread([
    (d.MANY, 30), (COUNTED, 25), (d.SOME, 15), (d.SEVERAL, 10), (d.FEW, 8), (d.BARE, 8), (LARGE, 4),
])  # fmt: skip
MODIFIERS = zipf(COMPOUND_MODIFIERS, offset=10)
CASES_OF_PRONOUN = {ACCUSATIVE: 1, DATIVE: 2}
ROLE_SET = frozenset((role,) for role in ROLES)
COMPARING = frozenset({d.THE, d.A, d.THIS})
SHADES = frozenset({"dark", "light"})
"""Before another adjective they could be read as a unit with it: dark brown is dunkelbraun."""
OWNABLE = frozenset({"thing", "document", "building", "idea", "event", "openable", "clothing", "vehicle"})
GENITIVE_KINDS = ("person", "building", "place")

IN_FRONT = zipf([("in front of", "vor"), ("behind", "hinter"), ("next to", "neben"), ("under", "unter")])
AT_SURFACES = frozenset(listed("market square playground cemetery farm"))
LANDMARKS = ("building", "vehicle", "plant")
PLACE_KINDS = ("building", "place", "spot", "surface")


@lru_cache(maxsize=1024)
def noun_table(kinds: tuple[str, ...]) -> tuple[Noun, ...]:
    """Return a table of the nouns of some classes, the most frequent of each class first."""
    longest = max(len(NOUNS[kind]) for kind in kinds)
    return zipf([NOUNS[kind][rank] for rank in range(longest) for kind in kinds if rank < len(NOUNS[kind])])


@lru_cache(maxsize=64)
def adjective_table(kind: str) -> tuple[Gradable, ...]:
    """Return a table of the adjectives that fit a class."""
    return zipf(ADJECTIVES[kind])


def draw_noun(bits: Bits, kinds: tuple[str, ...]) -> Noun:
    """Draw a noun; one in ten of the suitable ones becomes the head of a new compound."""
    noun = draw(bits, noun_table(kinds))
    if noun.kind in HEADS or (noun.kind == "person" and noun.english[0] in ROLE_SET):
        roll = bits(8)
        if roll < 30:
            # sometimes of three: city library door
            modifiers = tuple(draw(bits, MODIFIERS) for _ in range(2 if roll < 2 else 1))
            words = {modifier.english for modifier in modifiers}
            if len(words) == len(modifiers) and noun.english[0][-1] not in words:
                return compound(modifiers, noun)
    return noun


def draw_adjectives(bits: Bits, kind: str, first: d.Determiner) -> tuple[Adjective, ...]:
    """Draw none to two adjectives, one in ten in a higher degree."""
    roll = bits(8)
    if roll > 76:
        return ()
    gradable = draw(bits, adjective_table(kind))
    if roll < 8 and first is d.THE and gradable.superlative:
        return (gradable.superlative,)
    # "many more clever men" could be read in two ways
    if roll < 12 and first in COMPARING and gradable.comparative:
        return (gradable.comparative,)
    if roll > 70 and gradable.positive.english[0] not in SHADES:
        second = draw(bits, adjective_table(kind))
        if second is not gradable:
            return (gradable.positive, second.positive)
    return (gradable.positive,)


def resolve(bits: Bits, choice: d.Determiner | int) -> d.Determiner:
    """Draw the owner or the number that a choice of determiner leaves open."""
    if isinstance(choice, d.Determiner):
        return choice
    if choice == OWNED:
        return draw(bits, OWNERS)
    if choice == POSSESSED:
        return draw(bits, POSSESSORS)
    return d.count(*(number_words(bits) if choice == COUNTED else thousands(bits)))


def nominal(
    bits: Bits,
    kinds: tuple[str, ...],
    case: int,
    *,
    definite: bool | None = None,
    relative: RelativeClause | None = None,
) -> Phrase:
    """Draw a noun phrase.

    Args:
        bits: source of randomness.
        kinds: semantic classes of the noun.
        case: of the German side.
        definite: True for phrases like "the dog" only, False for "a dog" or "many dogs" only.
        relative: draws the relative clause that some phrases carry; None for none.
    """
    noun = draw_noun(bits, kinds)
    number = 1 if noun.countable and chance(bits, 27) else 0
    if definite:
        choices = DEFINITE
    elif definite is False:
        choices = MANY_KINDS if number else ONE_KIND
    elif number:
        choices = PLURALS
    else:
        choices = SINGULAR if noun.countable else UNCOUNTED
    first = resolve(bits, draw(bits, choices))
    result = d.noun_phrase(noun, case, number, first, draw_adjectives(bits, noun.kind, first))
    roll = bits(8)
    if roll < 14 and noun.kind in OWNABLE and first is d.THE:
        return with_genitive(bits, result)
    if relative is not None and roll > 236:
        clause = relative(bits, noun, number)
        return join_nominal(result, clause, result.slot)
    return result


def join_nominal(left: Phrase, right: Phrase, slot: int) -> Phrase:
    """Append a phrase that follows a noun."""
    a, b = len(left.english), len(left.german)
    links = [*left.links, *((x + a, y + b) for x, y in right.links)]
    return Phrase([*left.english, *right.english], [*left.german, *right.german], links, slot)


def with_genitive(bits: Bits, owned: Phrase) -> Phrase:
    """Append "of the house", in German a genitive: des Hauses."""
    noun = draw_noun(bits, GENITIVE_KINDS)
    first = d.THE if chance(bits, 75) else draw(bits, OWNERS)
    owner = d.noun_phrase(noun, GENITIVE, int(chance(bits, 20)), first, ())
    # "of" corresponds to the genitive article
    links = [(0, 0), *((a + 1, b) for a, b in owner.links)]
    return join_nominal(owned, Phrase(["of", *owner.english], owner.german, links), owned.slot)


def negated_nominal(bits: Bits, kinds: tuple[str, ...]) -> Phrase:
    """Draw an accusative with kein: not ... a dog, keinen Hund."""
    noun = draw_noun(bits, kinds)
    number = 1 if noun.countable and chance(bits, 35) else 0
    first = d.NOT_A if noun.countable else d.NOT_ANY
    return d.noun_phrase(noun, ACCUSATIVE, number, first, draw_adjectives(bits, noun.kind, first))


def named(bits: Bits, case: int) -> Phrase:
    """Draw a person's name; Herr takes -n outside the nominative."""
    name = person(bits)
    if case != NOMINATIVE and name.german[0] == "Herr":
        return name._replace(german=("Herrn", name.german[1]))
    return name


def subject(bits: Bits, kinds: tuple[str, ...], relative: RelativeClause | None) -> Phrase:
    """Draw a subject; people may be pronouns or names."""
    if "person" in kinds:
        roll = bits(8)
        if roll < 82:
            return draw(bits, SUBJECT_PRONOUNS)
        if roll < 124:
            return named(bits, NOMINATIVE)
        if len(kinds) > 1 and chance(bits, 60):
            kinds = ("person",)
    return nominal(bits, kinds, NOMINATIVE, relative=relative)


def an_object(
    bits: Bits, kinds: tuple[str, ...], case: int, relative: RelativeClause | None, light: bool
) -> Phrase:
    """Draw an object in the accusative or dative; `light` allows pronouns."""
    if kinds[0] == "person":
        roll = bits(8)
        if light and roll < 40:
            words = draw(bits, OBJECT_PRONOUNS)
            return phrase(words[0], words[CASES_OF_PRONOUN[case]], pronoun=True)
        if roll < 90:
            return named(bits, case)
        if len(kinds) > 1 and chance(bits, 50):
            kinds = kinds[:1]
    return nominal(bits, kinds, case, relative=relative)


def location(bits: Bits) -> Phrase:
    """Draw where: in Berlin, in the kitchen, at the station, behind the house; always dative."""
    roll = bits(8)
    if roll < 60:
        return d.prepositional("in", "in", town(bits))
    if roll < 90:
        english, german = draw(bits, IN_FRONT)
        return d.prepositional(english, german, nominal(bits, LANDMARKS, DATIVE, definite=True))
    noun = draw(bits, noun_table(PLACE_KINDS))
    english, german = preposition_of(noun)
    first = resolve(bits, draw(bits, DEFINITE)) if roll < 150 else d.THE
    adjectives = draw_adjectives(bits, noun.kind, first)
    return d.prepositional(english, german, d.noun_phrase(noun, DATIVE, 0, first, adjectives))


def preposition_of(noun: Noun) -> tuple[str, str]:
    """Return the prepositions for being at a place."""
    if noun.kind == "spot":
        return "at", "an"
    if noun.kind == "surface":
        return ("at" if noun.english[0][0] in AT_SURFACES else "on"), "auf"
    return "in", "in"


def direction(bits: Bits) -> Phrase:
    """Draw where to: to Berlin (nach), to the station (zu), into the house (in with accusative)."""
    roll = bits(8)
    if roll < 80:
        return d.prepositional("to", "nach", town(bits))
    if roll < 150:
        return d.prepositional("into", "in", nominal(bits, ("building",), ACCUSATIVE, definite=True))
    return d.prepositional("to", "zu", nominal(bits, PLACE_KINDS, DATIVE, definite=True))


def agent(bits: Bits) -> Phrase:
    """Draw by whom: by the workers, von den Arbeitern."""
    return d.prepositional("by", "von", an_object(bits, ("person",), DATIVE, None, light=False))


def question_object(bits: Bits, kinds: tuple[str, ...]) -> Phrase:
    """Draw "which book", in the accusative."""
    noun = draw_noun(bits, kinds)
    number = int(noun.countable and chance(bits, 30))
    return d.noun_phrase(noun, ACCUSATIVE, number, d.WHICH, ())
