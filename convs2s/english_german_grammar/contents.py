"""Drawing the content of a clause: verb, who does what to whom, when, where and how; relative clauses."""

from convs2s.english_german_grammar import clauses as c
from convs2s.english_german_grammar import determiners as d
from convs2s.english_german_grammar import nominals as n
from convs2s.english_german_grammar.adverbials import MANNER
from convs2s.english_german_grammar.clauses import Clause
from convs2s.english_german_grammar.descriptions import describing
from convs2s.english_german_grammar.drawing import Bits, chance, draw, spread, zipf
from convs2s.english_german_grammar.nouns import ACCUSATIVE, DATIVE, NOMINATIVE, PLURAL, Noun
from convs2s.english_german_grammar.phrases import GERMAN_COMMA, Phrase, chain, phrase
from convs2s.english_german_grammar.tenses import add_time, draw_tense
from convs2s.english_german_grammar.verb_list import VERBS

PASSIVE_PRESENT = spread(
    [(c.PASSIVE, 36), (c.PASSIVE_PERFECT, 24), (c.PASSIVE_MUST, 20), (c.PASSIVE_FUTURE, 20)]
)
FRAMES = spread([(frame, weight) for frame, weight in zip(
    "ITDGEPMLC*", (14, 38, 6, 7, 2, 11, 8, 10, 12, 5), strict=True,
)])  # fmt: skip
"""Frames of verbs (see `Verb.frame`), C for "be", * for the passive."""
VERB_TABLES = {frame: zipf(verbs, offset=6) for frame, verbs in VERBS.items()}
PASSIVE_VERBS = zipf([verb for verb in VERBS["T"] if not verb.stative], offset=6)
RELATIVE_PRONOUNS = d.table("der die das die", "den die das die", "dem der dem denen")
RELATIVE_FRAMES = spread([("T", 45), ("L", 25), ("P", 12), ("I", 12), ("D", 6)])
RELATIVE_KINDS = frozenset(kind for verb in VERBS["T"] if "person" in verb.subjects for kind in verb.objects)
SEE = VERBS["T"][0]


def draw_clause(bits: Bits, past: bool, depth: int = 0, *, asking: bool = False) -> Clause:
    """Draw a clause with its subject.

    Args:
        bits: source of randomness.
        past: True for a past tense.
        depth: 0 allows relative clauses in it.
        asking: True if it becomes a question: no negation, and no tense without an auxiliary.
    """
    relative = relative_clause if depth == 0 else None
    frame = draw(bits, FRAMES)
    if frame == "C":
        return describing(bits, past)
    if frame == "*":
        return passive(bits, past, relative)
    verb = draw(bits, VERB_TABLES[frame])
    who = n.subject(bits, verb.subjects, relative if chance(bits, 60) else None)
    willing = "person" in verb.subjects and not (verb.stative and frame == "D")
    clause = Clause(verb, draw_tense(bits, verb, past, willing), who)
    if asking and clause.tense in c.NO_SUPPORT:
        clause.tense = c.PAST if past else c.PRESENT
    negatable = not asking and clause.tense not in c.NO_SUPPORT and clause.tense != c.MUST
    clause.negated = negatable and chance(bits, 11)
    clause.contracted = chance(bits, 35)
    fill(bits, clause, relative)
    circumstances(bits, clause)
    return clause


def fill(bits: Bits, clause: Clause, relative: n.RelativeClause | None) -> None:
    """Draw the objects that the verb takes."""
    verb = clause.verb
    # "I saw me" wants a reflexive
    light = clause.subject.slot in {2, 5}
    match verb.frame:
        case "T":
            direct_object(bits, clause, relative)
        case "D":
            clause.dative = n.an_object(bits, verb.objects, DATIVE, relative, light=light)
        case "G" | "E":
            clause.accusative = n.nominal(bits, verb.objects, ACCUSATIVE)
            clause.dative = n.an_object(
                bits, ("person",), DATIVE, relative, light=light and verb.frame == "G"
            )
            if verb.frame == "E":
                english, german, links, *_ = clause.dative
                shifted = [(0, 0), *((a + 1, b) for a, b in links)]
                clause.dative = Phrase(["to", *english], german, shifted)
                clause.dative_last = True
        case "P":
            case = DATIVE if verb.preposition_dative else ACCUSATIVE
            inner = n.an_object(bits, verb.objects, case, relative, light=light)
            clause.complement = d.prepositional(verb.english_preposition, verb.german_preposition, inner)
        case "M":
            clause.complement = n.direction(bits)
        case "L":
            clause.complement = n.location(bits)


def direct_object(bits: Bits, clause: Clause, relative: n.RelativeClause | None) -> None:
    """Draw the accusative; in a negation, an accusative without its own article gets kein."""
    verb = clause.verb
    if clause.negated and verb.objects[0] != "person" and chance(bits, 50):
        clause.accusative = n.negated_nominal(bits, verb.objects)
        clause.no_article = True
    elif clause.negated and verb.objects[0] != "person":
        clause.accusative = n.nominal(bits, verb.objects, ACCUSATIVE, definite=True)
    else:
        # "called me up": English would put a pronoun before the particle
        light = clause.subject.slot in {2, 5} and not verb.particle
        clause.accusative = n.an_object(bits, verb.objects, ACCUSATIVE, relative, light=light)


def circumstances(bits: Bits, clause: Clause) -> None:
    """Draw when, how often, how and where; the time may come first in the sentence."""
    willing = "person" in clause.verb.subjects and not clause.verb.stative
    if willing and not clause.negated and chance(bits, 13):
        clause.manner = draw(bits, MANNER)
    if clause.verb.frame in "ITP" and willing and chance(bits, 17):
        clause.place = n.location(bits)
    add_time(bits, clause)


def passive(bits: Bits, past: bool, relative: n.RelativeClause | None) -> Clause:
    """Draw what is done to something, and sometimes by whom."""
    verb = draw(bits, PASSIVE_VERBS)
    what = n.nominal(bits, verb.objects, NOMINATIVE, relative=relative)
    tense = c.PASSIVE_PAST if past else draw(bits, PASSIVE_PRESENT)
    clause = Clause(verb, tense, what, negated=tense != c.PASSIVE_MUST and chance(bits, 8))
    clause.contracted = chance(bits, 35)
    if chance(bits, 35):
        clause.complement = n.agent(bits)
    add_time(bits, clause)
    return clause


def infinitive(bits: Bits, slot: int) -> Clause:
    """Draw what to do: to call the doctor; `slot` is who does it."""
    while True:
        frame = draw(bits, FRAMES)
        if frame in "TDGPM":
            verb = draw(bits, VERB_TABLES[frame])
            if "person" in verb.subjects and not verb.stative:
                break
    clause = Clause(verb, c.TO, Phrase((), (), (), slot))
    fill(bits, clause, None)
    return clause


def relative_clause(bits: Bits, noun: Noun, number: int) -> Phrase:
    """Draw "who lives in Berlin" or "that the woman had bought", between German commas."""
    gender = PLURAL if number else noun.gender
    past = chance(bits, 55)
    if noun.kind == "person" and chance(bits, 65):
        clause = relative_subject(bits, past, gender, number)
    else:
        clause = relative_object(bits, past, gender, noun.kind)
    return chain(GERMAN_COMMA, c.arrange(clause, c.LAST), GERMAN_COMMA)


def relative_subject(bits: Bits, past: bool, gender: int, number: int) -> Clause:
    """Draw a clause whose subject is who."""
    who = phrase("who", RELATIVE_PRONOUNS[NOMINATIVE][gender], slot=5 if number else 2)
    frame = draw(bits, RELATIVE_FRAMES)
    verb = draw(bits, VERB_TABLES[frame])
    while "person" not in verb.subjects:
        verb = draw(bits, VERB_TABLES[frame])
    clause = Clause(verb, draw_tense(bits, verb, past, willing=False), who)
    fill(bits, clause, None)
    return clause


def relative_object(bits: Bits, past: bool, gender: int, kind: str) -> Clause:
    """Draw a clause whose object is that."""
    verb = draw(bits, VERB_TABLES["T"])
    while kind not in verb.objects or "person" not in verb.subjects:
        verb = draw(bits, VERB_TABLES["T"]) if kind in RELATIVE_KINDS else SEE
        if verb is SEE:
            break
    clause = Clause(verb, draw_tense(bits, verb, past, willing=False))
    clause.subject = n.subject(bits, ("person",), None)
    clause.front = phrase("that", RELATIVE_PRONOUNS[ACCUSATIVE][gender])
    return clause
