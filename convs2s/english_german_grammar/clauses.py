"""Clauses: the forms of the verb in each tense, and the word order of each language.

English keeps subject, verb, objects. German puts the finite verb second, first or last, and the rest
of the verb (participle, infinitive, separable prefix) at the end.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from convs2s.english_german_grammar.phrases import LEFT, NOTHING, Link, Phrase, phrase, weave
from convs2s.english_german_grammar.verbs import Verb

PRESENT, PROGRESSIVE, PAST, PAST_PROGRESSIVE, PERFECT, PLUPERFECT, FUTURE = range(7)
CAN, MUST, SHOULD, MAY, WANT, LIKE, COULD, HAD_TO, WANTED, TO = range(7, 17)
PASSIVE, PASSIVE_PAST, PASSIVE_PERFECT, PASSIVE_MUST, PASSIVE_FUTURE = range(17, 22)
"""Tenses and modals; TO is the infinitive with "to" and "zu", which has no subject."""

SECOND, FIRST, LAST = range(3)
"""Positions of the finite verb in German."""

I_YOU_HE = 7  # slots, see Phrase.slot


def forms(text: str) -> tuple[str, ...]:
    """Return seven forms by slot; shorter lists give I, you, he, we and repeat the rest."""
    words = text.split()
    return tuple(words) if len(words) == I_YOU_HE else tuple(words[i] for i in (0, 1, 2, 3, 4, 3, 3))


HABEN = forms("habe hast hat haben habt")
HATTE = forms("hatte hattest hatte hatten hattet")
SEIN = forms("bin bist ist sind seid")
WAR = forms("war warst war waren wart")
WERDEN = forms("werde wirst wird werden werdet")
WURDE = forms("wurde wurdest wurde wurden wurdet")
BE = forms("am are is are are are are")
WAS = forms("was were was were were were were")
HAVE = forms("have have has have have have have")
DO = forms("do do does do do do do")


def same(word: str) -> tuple[str, ...]:
    """Return one word for all slots."""
    return (word,) * I_YOU_HE


# English auxiliary by slot, whether "to" follows, German auxiliary by slot.
MODALS = {
    FUTURE: (same("will"), False, WERDEN),
    CAN: (same("can"), False, forms("kann kannst kann können könnt")),
    MUST: (same("must"), False, forms("muss musst muss müssen müsst")),
    SHOULD: (same("should"), False, forms("soll sollst soll sollen sollt")),
    MAY: (same("may"), False, forms("darf darfst darf dürfen dürft")),
    WANT: (forms("want want wants want want want want"), True, forms("will willst will wollen wollt")),
    LIKE: (same("would"), True, forms("möchte möchtest möchte möchten möchtet")),
    COULD: (same("could"), False, forms("konnte konntest konnte konnten konntet")),
    HAD_TO: (same("had"), True, forms("musste musstest musste mussten musstet")),
    WANTED: (same("wanted"), True, forms("wollte wolltest wollte wollten wolltet")),
}
PASSIVES = {
    PASSIVE: (BE, (), WERDEN, ()),
    PASSIVE_PAST: (WAS, (), WURDE, ()),
    PASSIVE_PERFECT: (HAVE, ("been",), SEIN, ("worden",)),
    PASSIVE_MUST: (same("must"), ("be",), MODALS[MUST][2], ("werden",)),
    PASSIVE_FUTURE: (same("will"), ("be",), WERDEN, ("werden",)),
}
PASSIVE_TENSES = frozenset(PASSIVES)
NO_SUPPORT = frozenset({WANT, LIKE, HAD_TO, WANTED})
"""Tenses that form neither questions nor negations here."""
REFLEXIVE = forms("mich dich sich uns euch sich sich")


class VerbGroup(NamedTuple):
    """The verb's words in a clause, in two parts: the part that moves, and the rest."""

    first: Phrase
    """The English auxiliary, if any; the German finite verb."""
    rest: Phrase
    cross: tuple[Link, ...]
    """Links from English `rest` to German `first`."""
    main: int
    """Index of the main verb in English `rest`, -1 if it is in `first`."""


@lru_cache(maxsize=8192)
def verb_group(verb: Verb, tense: int, slot: int, last: bool, support: bool) -> VerbGroup:
    """Return the verb's words.

    Args:
        verb: the main verb.
        tense: one of the constants of this module.
        slot: person and number of the subject; anything for TO.
        last: True if German has the finite verb last, which joins the separable prefix to it.
        support: True if English needs an auxiliary, for a question or a negation.
    """
    if verb.base == "be" and tense in {PRESENT, PAST}:
        finite = (BE, SEIN) if tense == PRESENT else (WAS, WAR)
        return VerbGroup(phrase(finite[0][slot], finite[1][slot]), NOTHING, (), -1)
    if tense in {PRESENT, PROGRESSIVE, PAST, PAST_PROGRESSIVE}:
        return simple_group(verb, tense, slot, last, support)
    return compound_group(verb, tense, slot)


def simple_group(verb: Verb, tense: int, slot: int, last: bool, support: bool) -> VerbGroup:
    """Return the group of a tense with a single German verb."""
    is_present = tense in {PRESENT, PROGRESSIVE}
    finite = (verb.present if is_present else verb.preterite)[slot]
    german, rest = (
        ((verb.prefix + finite,), ()) if last else ((finite,), (verb.prefix,) if verb.prefix else ())
    )
    auxiliary: tuple[str, ...] = ()
    if tense in {PROGRESSIVE, PAST_PROGRESSIVE}:
        auxiliary, word = ((BE if is_present else WAS)[slot],), verb.gerund
    elif support:
        auxiliary, word = (DO[slot] if is_present else "did",), verb.base
    elif is_present:
        word = verb.third if slot == 2 else verb.base
    else:
        word = verb.past
    english = (word, *verb.particle)
    links = tuple((i, 0) for i in range(len(english))) if rest else ()
    first = Phrase(auxiliary, german, ((0, 0),) if auxiliary else ())
    return VerbGroup(first, Phrase(english, rest, links), tuple((i, 0) for i in range(len(english))), 0)


def compound_group(verb: Verb, tense: int, slot: int) -> VerbGroup:
    """Return the group of a tense with a German participle or infinitive."""
    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    tail = verb.prefix + verb.infinitive
    word = verb.base
    if tense == TO:
        return infinitive_group(verb)
    if tense in {PERFECT, PLUPERFECT}:
        english = HAVE if tense == PERFECT else same("had")
        present, preterite = (SEIN, WAR) if verb.uses_sein else (HABEN, HATTE)
        german = present if tense == PERFECT else preterite
        word, tail = verb.past_participle, verb.participle
    elif tense in PASSIVES:
        english, before, german, after = PASSIVES[tense]
        word, tail = verb.past_participle, verb.participle
    else:
        english, to, german = MODALS[tense]
        before = ("to",) if to else ()
    auxiliary = (english[slot], "like") if tense == LIKE else (english[slot],)
    words = (*before, word, *verb.particle)
    # "been" and "be" belong to worden and werden, everything else to the main verb
    links = tuple((i, 1 if after and i < len(before) else 0) for i in range(len(words)))
    first = Phrase(auxiliary, (german[slot],), tuple((i, 0) for i in range(len(auxiliary))))
    return VerbGroup(first, Phrase(words, (tail, *after), links), (), len(before))


def infinitive_group(verb: Verb) -> VerbGroup:
    """Return to call and anzurufen, or to help and zu helfen."""
    words = ("to", verb.base, *verb.particle)
    if verb.prefix:
        german: tuple[str, ...] = (f"{verb.prefix}zu{verb.infinitive}",)
        links = tuple((i, 0) for i in range(len(words)))
    else:
        german = ("zu", verb.infinitive)
        links = tuple((i, min(i, 1)) for i in range(len(words)))
    return VerbGroup(NOTHING, Phrase(words, german, links), (), 1)


@dataclass(slots=True)
class Clause:
    """The content of a clause, before its words are put in order."""

    verb: Verb
    tense: int
    subject: Phrase = NOTHING
    dative: Phrase = NOTHING
    accusative: Phrase = NOTHING
    dative_last: bool = False
    """True if English says "explained the plan to the boss"."""
    complement: Phrase = NOTHING
    """Object with a preposition, direction, or the complement of "be"."""
    time: Phrase = NOTHING
    frequency: Phrase = NOTHING
    manner: Phrase = NOTHING
    place: Phrase = NOTHING
    negated: bool = False
    no_article: bool = False
    """True if the accusative has "kein" for "not"."""
    contracted: bool = False
    """True for English "doesn't"."""
    front: Phrase = NOTHING
    """What precedes the subject in both languages: an adverbial, a question word, a relative pronoun."""


(FRONT, SUBJECT, VERB_FIRST, NOT, FREQUENCY, VERB_REST, DATIVE, ACCUSATIVE, COMPLEMENT, MANNER, PLACE, TIME,
 SELF) = range(13)  # fmt: skip
STATEMENT_ORDER = (FRONT, SUBJECT, VERB_FIRST, NOT, FREQUENCY, VERB_REST)
QUESTION_ORDER = (FRONT, VERB_FIRST, SUBJECT, NOT, FREQUENCY, VERB_REST)
OBJECTS = (DATIVE, ACCUSATIVE, COMPLEMENT, MANNER, PLACE, TIME)
OBJECTS_SWAPPED = (ACCUSATIVE, DATIVE, COMPLEMENT, MANNER, PLACE, TIME)
CANNOT_CONTRACT = frozenset({"am", "may"})
CONTRACTED = {"will": "won", "can": "can"}


def arrange(clause: Clause, place: int, question: bool = False) -> Phrase:
    """Put the words of a clause in the order of each language.

    Args:
        clause: the content.
        place: position of the German finite verb: SECOND, FIRST or LAST.
        question: True if English inverts subject and auxiliary.
    """
    slot = clause.subject.slot
    last = place == LAST
    group = verb_group(clause.verb, clause.tense, slot, last, clause.negated or question)
    first, negation = negate(clause, group.first) if clause.negated else (group.first, NOTHING)
    reflexive = Phrase((), (REFLEXIVE[slot],), ()) if clause.verb.reflexive else NOTHING
    parts = (
        clause.front, clause.subject, first, negation, clause.frequency, group.rest, clause.dative,
        clause.accusative, clause.complement, clause.manner, clause.place, clause.time, reflexive,
    )  # fmt: skip
    english = (QUESTION_ORDER if question else STATEMENT_ORDER) + (
        OBJECTS_SWAPPED if clause.dative_last else OBJECTS
    )
    cross = [(VERB_REST, a, VERB_FIRST, b) for a, b in group.cross]
    if clause.verb.reflexive:
        cross.append((VERB_REST, group.main, SELF, 0))
    if clause.no_article:
        cross.append((NOT, 0, ACCUSATIVE, 0))
    return weave(parts, english, german_order(clause, place), cross)


def negate(clause: Clause, auxiliary: Phrase) -> tuple[Phrase, Phrase]:
    """Return the auxiliary, possibly contracted, and "not"; German has "nicht" unless there is a "kein"."""
    word = auxiliary.english[-1]
    german = () if clause.no_article else ("nicht",)
    links = () if clause.no_article else ((0, 0),)
    # "cannot" is one word, so always contract it
    if (clause.contracted or word == "can") and word not in CANNOT_CONTRACT:
        short = CONTRACTED.get(word, word + "n")
        # Moses splits "can't" before the apostrophe: can 't; and likewise "don't": don 't
        return auxiliary._replace(english=(short,)), Phrase((LEFT + "'t",), german, links)
    return auxiliary, Phrase(("not",), german, links)


def german_order(clause: Clause, place: int) -> Sequence[int]:
    """Return the German order of the parts of a clause."""
    light = [SELF]
    full: list[int] = []
    for index, item in ((ACCUSATIVE, clause.accusative), (DATIVE, clause.dative)):
        if item.pronoun:
            light.append(index)
        elif item.german:
            full.insert(0, index)
    middle = [*light, FREQUENCY, TIME, *full, NOT, MANNER, PLACE, COMPLEMENT, VERB_REST]
    if place == LAST:
        return [FRONT, SUBJECT, *middle, VERB_FIRST]
    if place == FIRST or clause.front.german:
        return [FRONT, VERB_FIRST, SUBJECT, *middle]
    return [SUBJECT, VERB_FIRST, *middle]
