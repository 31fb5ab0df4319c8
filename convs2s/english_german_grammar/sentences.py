"""Sentences: statements, questions, requests, quotations, and clauses combined."""

from convs2s.english_german_grammar import clauses as c
from convs2s.english_german_grammar import contents as t
from convs2s.english_german_grammar import nominals as n
from convs2s.english_german_grammar import phrases as p
from convs2s.english_german_grammar.adverbials import phrases
from convs2s.english_german_grammar.clauses import Clause, arrange
from convs2s.english_german_grammar.descriptions import weather
from convs2s.english_german_grammar.drawing import Bits, chance, draw, spread, zipf
from convs2s.english_german_grammar.nouns import ACCUSATIVE
from convs2s.english_german_grammar.phrases import Phrase, chain, phrase
from convs2s.english_german_grammar.tenses import draw_time
from convs2s.english_german_grammar.verb_list import VERBS

BECAUSE = phrases("""
    because = weil; although = obwohl; while = während; before = bevor; until = bis; whenever = sooft;
    even though = obwohl = 0-0 1-0; so that = damit = 0-0 1-0""")
FRONTED = phrases("because = weil; although = obwohl; while = während; before = bevor")
AFTER = phrase("after", "nachdem")
IF, WHEN_PAST, WHEN_NOW = phrase("if", "wenn"), phrase("when", "als"), phrase("when", "wenn")
AS_SOON_AS = phrase("as soon as", "sobald", "0-0 1-0 2-0")
COORDINATORS = spread([(phrase("and", "und"), 60), (phrase("or", "oder"), 8)])
BUT, FOR = phrase("but", "aber"), phrase("for", "denn")
THAT, SILENT_THAT, WHETHER = phrase("that", "dass"), phrase("", "dass"), phrase("whether", "ob")
IN_ORDER = phrase("in order", "um", "0-0 1-0")
PURPOSE = phrase("", "um")
ADVERB_QUESTIONS = phrases(
    "where = wo; when = wann; why = warum; how = wie; since when = seit wann; how often = wie oft"
)
WHO, WHAT = phrase("who", "wer"), phrase("what", "was")
PLEASE, FORMAL_YOU = phrase("please", "bitte"), Phrase((), ("Sie",), (), 6)
THERE = {False: ("is", "are", "gibt"), True: ("was", "were", "gab")}
OPEN_QUOTE, CLOSE_QUOTE = phrase('"' + p.RIGHT, '"' + p.RIGHT), phrase(p.LEFT + '"', p.LEFT + '"')
COLON = phrase(p.LEFT + ":", p.LEFT + ":")
SPEECH = zipf([verb for verb in VERBS["S"] if verb.base in {"say", "explain", "claim", "announce"}])


def is_past(bits: Bits) -> bool:
    """Draw whether a sentence is about the past."""
    return chance(bits, 50)


def statement(bits: Bits) -> Phrase:
    """Draw one main clause."""
    return chain(arrange(t.draw_clause(bits, is_past(bits)), c.SECOND), p.PERIOD)


def subordinate_last(bits: Bits) -> Phrase:
    """Draw "He slept because he was tired."."""
    past = is_past(bits)
    main = arrange(t.draw_clause(bits, past, 1), c.SECOND)
    conjunction = draw(bits, BECAUSE)
    return chain(main, p.GERMAN_COMMA, conjunction, dependent(bits, past), p.PERIOD)


def subordinate_first(bits: Bits) -> Phrase:
    """Draw "When it rained, the children stayed at home."; German continues with the verb."""
    past = is_past(bits)
    roll = bits(3)
    conjunction = draw(bits, FRONTED)
    first = arrange(weather(bits, past), c.LAST) if roll == 7 else dependent(bits, past)
    if roll < 3:
        conjunction = WHEN_PAST if past else IF
    elif roll == 3:
        conjunction = AS_SOON_AS if past else WHEN_NOW
    elif roll == 4:
        conjunction, first = AFTER, earlier(bits, past)
    main = t.draw_clause(bits, past, 1)
    main.front = p.NOTHING
    return chain(conjunction, first, p.COMMA, arrange(main, c.FIRST), p.PERIOD)


def dependent(bits: Bits, past: bool) -> Phrase:
    """Draw a clause with the German verb last."""
    clause = t.draw_clause(bits, past, 1)
    if clause.front.german:
        clause.front, clause.time = p.NOTHING, clause.front
    return arrange(clause, c.LAST)


def earlier(bits: Bits, past: bool) -> Phrase:
    """Draw a clause for "after", in a perfect tense."""
    clause = t.draw_clause(bits, past, 1)
    while clause.verb.frame == "C" or is_passive(clause):
        clause = t.draw_clause(bits, past, 1)
    clause.tense = c.PLUPERFECT if past else c.PERFECT
    clause.front = clause.time = clause.frequency = p.NOTHING
    return arrange(clause, c.LAST)


def is_passive(clause: Clause) -> bool:
    """Return whether a clause says what is done to the subject."""
    return clause.tense in c.PASSIVE_TENSES


def reported(bits: Bits, frame: str) -> tuple[Phrase, bool]:
    """Draw who says, knows or asks, and whether it is in the past."""
    past = is_past(bits)
    verb = draw(bits, t.VERB_TABLES[frame])
    clause = Clause(verb, c.PAST if past else c.PRESENT, n.subject(bits, ("person",), None))
    if frame == "S" and verb.base in {"know", "say", "hear"} and chance(bits, 12):
        clause.negated = True
    return arrange(clause, c.SECOND), past


def that_clause(bits: Bits) -> Phrase:
    """Draw "She says that the dog sleeps."."""
    head, past = reported(bits, "S")
    return chain(head, p.GERMAN_COMMA, SILENT_THAT if bits(3) == 0 else THAT, dependent(bits, past), p.PERIOD)


def whether_clause(bits: Bits) -> Phrase:
    """Draw "He asked whether the train had arrived."."""
    head, past = reported(bits, "W")
    return chain(head, p.GERMAN_COMMA, WHETHER, dependent(bits, past), p.PERIOD)


def coordination(bits: Bits) -> Phrase:
    """Draw two main clauses."""
    past = is_past(bits)
    first = arrange(t.draw_clause(bits, past, 1), c.SECOND)
    second = arrange(t.draw_clause(bits, past, 1), c.SECOND)
    roll = bits(3)
    if roll < 3:
        return chain(first, p.COMMA, BUT, second, p.PERIOD)
    if roll == 3:
        return chain(first, p.COMMA, FOR, second, p.PERIOD)
    return chain(first, draw(bits, COORDINATORS), second, p.PERIOD)


def yes_no_question(bits: Bits) -> Phrase:
    """Draw "Did he call the doctor?"."""
    return chain(question_body(bits), p.QUESTION_MARK)


def question_body(bits: Bits) -> Phrase:
    """Draw a question without its mark."""
    clause = asking_clause(bits)
    return arrange(clause, c.FIRST, question=True)


def asking_clause(bits: Bits) -> Clause:
    """Draw a clause fit for a question."""
    clause = t.draw_clause(bits, is_past(bits), 1, asking=True)
    clause.negated, clause.frequency = False, p.NOTHING
    if clause.front.german:
        clause.front, clause.time = p.NOTHING, clause.front
    return clause


def adverb_question(bits: Bits) -> Phrase:
    """Draw "Why does the child cry?"."""
    clause = asking_clause(bits)
    while clause.verb.frame not in "ITDGP":
        clause = asking_clause(bits)
    clause.front = draw(bits, ADVERB_QUESTIONS)
    clause.time = clause.frequency = clause.place = clause.manner = p.NOTHING
    return chain(arrange(clause, c.SECOND, question=True), p.QUESTION_MARK)


def object_question(bits: Bits) -> Phrase:
    """Draw "Which book did he read?" or "What does she buy?"."""
    past = is_past(bits)
    verb = draw(bits, t.VERB_TABLES["T"])
    while "person" in verb.objects or "person" not in verb.subjects:
        verb = draw(bits, t.VERB_TABLES["T"])
    tense = (c.PAST if past else c.PRESENT) if chance(bits, 60) else (c.COULD if past else c.PERFECT)
    clause = Clause(verb, tense, n.subject(bits, ("person",), None))
    clause.front = WHAT if chance(bits, 45) else n.question_object(bits, verb.objects)
    return chain(arrange(clause, c.SECOND, question=True), p.QUESTION_MARK)


def subject_question(bits: Bits) -> Phrase:
    """Draw "Who called the doctor?"."""
    clause = asking_clause(bits)
    while "person" not in clause.verb.subjects or clause.verb.frame == "C" or is_passive(clause):
        clause = asking_clause(bits)
    clause.subject = WHO
    return chain(arrange(clause, c.SECOND), p.QUESTION_MARK)


def infinitive_clause(bits: Bits) -> Phrase:
    """Draw "She tries to open the door."."""
    past = is_past(bits)
    verb = draw(bits, t.VERB_TABLES["Z"])
    head = Clause(verb, c.PAST if past else c.PRESENT, n.subject(bits, ("person",), None))
    if chance(bits, 30):
        head.tense = c.PLUPERFECT if past else c.PERFECT
    if chance(bits, 25):
        head.front = draw_time(bits, head.tense)
    rest = arrange(t.infinitive(bits, head.subject.slot), c.LAST)
    return chain(arrange(head, c.SECOND), p.GERMAN_COMMA, rest, p.PERIOD)


def purpose_clause(bits: Bits) -> Phrase:
    """Draw "He went to Berlin in order to visit his aunt."."""
    past = is_past(bits)
    verb = draw(bits, t.VERB_TABLES["M"])
    clause = Clause(verb, c.PAST if past else c.PRESENT, n.subject(bits, ("person",), None))
    clause.complement = n.direction(bits)
    rest = arrange(t.infinitive(bits, clause.subject.slot), c.LAST)
    link = IN_ORDER if chance(bits, 60) else PURPOSE
    return chain(arrange(clause, c.SECOND), p.GERMAN_COMMA, link, rest, p.PERIOD)


def request(bits: Bits) -> Phrase:
    """Draw "Please open the window!"; German addresses formally."""
    clause = t.infinitive(bits, 6)
    clause.tense, clause.subject, clause.front = c.PRESENT, FORMAL_YOU, PLEASE
    return chain(arrange(clause, c.SECOND), p.EXCLAMATION_MARK if chance(bits, 50) else p.PERIOD)


def existence(bits: Bits) -> Phrase:
    """Draw "There are many museums in the city."; German has one form for one and many."""
    past = is_past(bits)
    what = n.nominal(bits, ("animal", "thing", "person", "plant"), ACCUSATIVE, definite=False)
    one, many, german = THERE[past]
    verb = phrase(many if what.slot == 5 else one, german)
    there, where = phrase("there", "es"), n.location(bits)
    parts = (where, there, verb, what, p.PERIOD)
    if chance(bits, 50):
        return p.weave(parts, (0, 1, 2, 3, 4), (0, 2, 1, 3, 4))
    return p.weave(parts, (1, 2, 3, 0, 4), (1, 2, 0, 3, 4))


def quotation(bits: Bits) -> Phrase:
    """Draw direct speech after a colon, or before the speaker."""
    clause = Clause(draw(bits, SPEECH), c.PAST, n.subject(bits, ("person",), None))
    if chance(bits, 50):
        said = capital(statement(bits) if chance(bits, 60) else yes_no_question(bits))
        return chain(arrange(clause, c.SECOND), COLON, OPEN_QUOTE, said, CLOSE_QUOTE)
    said = capital(arrange(t.draw_clause(bits, is_past(bits), 1), c.SECOND))
    # "...," he said / "...", sagte er: the comma goes inside in English, outside in German.
    inside, speaker = p.ONLY_COMMA, arrange(clause, c.FIRST)
    marks = Phrase((inside, p.LEFT + '"'), (p.LEFT + '"', inside), ((0, 1), (1, 0)))
    return chain(OPEN_QUOTE, said, marks, speaker, p.PERIOD)


def capital(words: Phrase) -> Phrase:
    """Return a phrase that starts with a capital letter."""
    english, german = (
        [side[0][0].upper() + side[0][1:], *side[1:]] for side in (words.english, words.german)
    )
    return words._replace(english=english, german=german)


KINDS = spread([
    (statement, 44), (subordinate_last, 9), (subordinate_first, 7), (that_clause, 7), (whether_clause, 3),
    (coordination, 5), (yes_no_question, 4), (adverb_question, 3), (object_question, 2),
    (subject_question, 2), (infinitive_clause, 5), (purpose_clause, 2), (request, 2),
    (existence, 3), (quotation, 3),
])  # fmt: skip


def sentence(bits: Bits) -> Phrase:
    """Draw a sentence of any kind."""
    return draw(bits, KINDS)(bits)
