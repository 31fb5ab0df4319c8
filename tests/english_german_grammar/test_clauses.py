from convs2s.english_german_grammar import clauses as c
from convs2s.english_german_grammar import determiners as d
from convs2s.english_german_grammar.clauses import Clause, arrange
from convs2s.english_german_grammar.nouns import ACCUSATIVE, DATIVE, NOMINATIVE
from convs2s.english_german_grammar.phrases import NOTHING, Phrase, phrase
from convs2s.english_german_grammar.verb_list import BE
from tests.english_german_grammar.lookup import adjective, linked, noun, np, said, verb

TEACHER = np("teacher", NOMINATIVE)
NEIGHBOR = np("neighbor", ACCUSATIVE)
SHE = phrase("she", "sie", pronoun=True)
YESTERDAY = phrase("yesterday", "gestern")


def calling(tense: int) -> Clause:
    return Clause(verb("call", "T"), tense, TEACHER, accusative=NEIGHBOR)


def test_fronted_adverbial_inverts_german_and_splits_the_verb() -> None:
    """The verb is second: the subject follows it, and the prefix goes to the end."""
    clause = calling(c.PAST)
    clause.front = YESTERDAY
    assert said(clause, c.SECOND) == (
        "Yesterday the teacher called the neighbor.",
        "Gestern rief der Lehrer den Nachbarn an.",
    )
    assert {("called", "rief"), ("called", "an")} <= linked(arrange(clause, c.SECOND))


def test_verb_comes_last_in_a_dependent_clause() -> None:
    """The prefix is then one word with the verb, and the auxiliary follows the participle."""
    assert said(calling(c.PAST), c.LAST)[1] == "Der Lehrer den Nachbarn anrief."
    assert said(calling(c.PERFECT), c.LAST)[1] == "Der Lehrer den Nachbarn angerufen hat."
    assert said(calling(c.MUST), c.LAST)[1] == "Der Lehrer den Nachbarn anrufen muss."


def test_compound_tenses_frame_the_clause() -> None:
    """Participles and infinitives go to the end."""
    wanted = {
        c.PRESENT: ("calls", "ruft den Nachbarn an"),
        c.PROGRESSIVE: ("is calling", "ruft den Nachbarn an"),
        c.PAST_PROGRESSIVE: ("was calling", "rief den Nachbarn an"),
        c.PERFECT: ("has called", "hat den Nachbarn angerufen"),
        c.PLUPERFECT: ("had called", "hatte den Nachbarn angerufen"),
        c.FUTURE: ("will call", "wird den Nachbarn anrufen"),
        c.WANT: ("wants to call", "will den Nachbarn anrufen"),
        c.LIKE: ("would like to call", "möchte den Nachbarn anrufen"),
        c.HAD_TO: ("had to call", "musste den Nachbarn anrufen"),
    }
    for tense, (english, german) in wanted.items():
        assert said(calling(tense), c.SECOND) == (
            f"The teacher {english} the neighbor.",
            f"Der Lehrer {german}.",
        )


def test_movement_takes_sein() -> None:
    """gehen and similar verbs form the perfect with sein."""
    clause = Clause(verb("go", "M"), c.PERFECT, SHE)
    clause.complement = d.prepositional("to", "zu", np("station", DATIVE))
    assert said(clause, c.SECOND) == ("She has gone to the station.", "Sie ist zum Bahnhof gegangen.")


def test_question_needs_do_in_english_only() -> None:
    """Both "did" and "call" are linked to the German finite verb."""
    clause = calling(c.PAST)
    assert said(clause, c.FIRST, question=True) == (
        "Did the teacher call the neighbor.",
        "Rief der Lehrer den Nachbarn an.",
    )
    pairs = linked(arrange(clause, c.FIRST, question=True))
    assert {("did", "rief"), ("call", "rief"), ("call", "an")} <= pairs
    clause.front, clause.accusative = phrase("who", "wen"), NOTHING
    assert said(clause, c.SECOND, question=True) == ("Who did the teacher call.", "Wen rief der Lehrer an.")


def test_negation_follows_the_definite_object() -> None:
    """nicht follows the object and precedes the prefix or a place."""
    clause = calling(c.PAST)
    clause.negated = True
    assert said(clause, c.SECOND) == (
        "The teacher did not call the neighbor.",
        "Der Lehrer rief den Nachbarn nicht an.",
    )
    assert {("did", "rief"), ("not", "nicht")} <= linked(arrange(clause, c.SECOND))
    home = Clause(verb("live", "L"), c.PRESENT, SHE, negated=True, contracted=True)
    home.complement = d.prepositional("in", "in", np("city", DATIVE))
    assert said(home, c.SECOND) == ("She doesn't live in the city.", "Sie wohnt nicht in der Stadt.")


def test_negated_article_is_kein() -> None:
    """In German, "not" and "a" are one word."""
    clause = Clause(verb("buy", "T"), c.CAN, SHE, negated=True, no_article=True)
    clause.accusative = np("bag", ACCUSATIVE, first=d.NOT_A)
    assert said(clause, c.SECOND) == ("She can't buy a bag.", "Sie kann keine Tasche kaufen.")
    assert {("\x01't", "keine"), ("a", "keine"), ("can", "kann")} <= linked(arrange(clause, c.SECOND))


def test_dative_precedes_accusative_and_pronouns_precede_nouns() -> None:
    """Of two nouns the dative comes first; a pronoun comes before nouns, right after the verb."""
    clause = Clause(verb("give", "G"), c.PAST, TEACHER, dative=np("child", DATIVE), time=YESTERDAY)
    clause.accusative = np("book", ACCUSATIVE, first=d.A)
    assert said(clause, c.SECOND) == (
        "The teacher gave the child a book yesterday.",
        "Der Lehrer gab gestern dem Kind ein Buch.",
    )
    clause.dative = phrase("him", "ihm", pronoun=True)
    assert said(clause, c.SECOND)[1] == "Der Lehrer gab ihm gestern ein Buch."


def test_english_to_changes_the_english_order_only() -> None:
    """In English, the recipient of "explain" comes after the object."""
    clause = Clause(
        verb("explain", "E"), c.PAST, TEACHER, accusative=np("plan", ACCUSATIVE), dative_last=True
    )
    clause.dative = Phrase(["to", "the", "child"], ["dem", "Kind"], [(0, 0), (1, 0), (2, 1)])
    assert said(clause, c.SECOND) == (
        "The teacher explained the plan to the child.",
        "Der Lehrer erklärte dem Kind den Plan.",
    )


def test_reflexive_pronoun_agrees_and_is_linked_to_the_verb() -> None:
    """English has no such pronoun; in German it comes right after verb and subject."""
    clause = Clause(verb("hurry", "I"), c.PERFECT, phrase("we", "wir", slot=3))
    assert said(clause, c.SECOND) == ("We have hurried.", "Wir haben uns beeilt.")
    assert ("hurried", "uns") in linked(arrange(clause, c.SECOND))
    assert said(clause, c.LAST)[1] == "Wir uns beeilt haben."


def test_passive() -> None:
    """In German, "was repaired" is "wurde repariert", and "has been" is "ist ... worden"."""
    clause = Clause(verb("repair", "T"), c.PASSIVE_PAST, np("car", NOMINATIVE))
    clause.complement = d.prepositional("by", "von", np("boy", DATIVE))
    assert said(clause, c.SECOND) == (
        "The car was repaired by the boy.",
        "Das Auto wurde vom Jungen repariert.",
    )
    clause.tense, clause.complement = c.PASSIVE_PERFECT, NOTHING
    assert said(clause, c.SECOND) == ("The car has been repaired.", "Das Auto ist repariert worden.")
    assert {("has", "ist"), ("been", "worden"), ("repaired", "repariert")} <= linked(
        arrange(clause, c.SECOND)
    )
    clause.tense = c.PASSIVE_MUST
    assert said(clause, c.SECOND) == ("The car must be repaired.", "Das Auto muss repariert werden.")


def test_infinitive_with_zu() -> None:
    """In German, "zu" goes between a separable prefix and its verb."""
    clause = Clause(verb("call", "T"), c.TO, accusative=NEIGHBOR)
    assert said(clause, c.LAST) == ("To call the neighbor.", "Den Nachbarn anzurufen.")
    assert {("to", "anzurufen"), ("call", "anzurufen")} <= linked(arrange(clause, c.LAST))
    clause.verb = verb("visit", "T")
    assert said(clause, c.LAST) == ("To visit the neighbor.", "Den Nachbarn zu besuchen.")
    assert {("to", "zu"), ("visit", "besuchen")} <= linked(arrange(clause, c.LAST))


def test_be_needs_no_do() -> None:
    """The verb "be" is its own auxiliary."""
    tired = adjective("tired", "person").positive
    complement = Phrase(tired.english, (tired.predicate,), ((0, 0),))
    clause = Clause(BE, c.PRESENT, np("boy", NOMINATIVE, 1), complement=complement, negated=True)
    assert said(clause, c.SECOND) == ("The boys are not tired.", "Die Jungen sind nicht müde.")
    assert said(clause, c.LAST)[1] == "Die Jungen nicht müde sind."
    clause.negated, clause.tense = False, c.PLUPERFECT
    assert said(clause, c.SECOND) == ("The boys had been tired.", "Die Jungen waren müde gewesen.")


def test_person_decides_both_verb_forms() -> None:
    """English has -s in the third person; German has endings, and a formal you."""
    clause = Clause(verb("work", "I"), c.PRESENT)
    seen = []
    for english, german, slot in (("I", "ich", 0), ("you", "du", 1), ("he", "er", 2), ("you", "Sie", 6)):
        clause.subject = phrase(english, german, slot=slot)
        seen.append(said(clause, c.SECOND))
    assert seen == [
        ("I work.", "Ich arbeite."),
        ("You work.", "Du arbeitest."),
        ("He works.", "Er arbeitet."),
        ("You work.", "Sie arbeiten."),
    ]


def test_order_of_the_middle_field() -> None:
    """The order is how often, when, whom, how, where."""
    clause = Clause(verb("read", "T"), c.MUST, TEACHER, accusative=np("book", ACCUSATIVE))
    clause.manner = phrase("alone", "allein")
    clause.place = d.prepositional("in", "in", d.noun_phrase(noun("kitchen"), DATIVE, 0, d.THE))
    clause.time = phrase("today", "heute")
    assert said(clause, c.SECOND) == (
        "The teacher must read the book alone in the kitchen today.",
        "Der Lehrer muss heute das Buch allein in der Küche lesen.",
    )
