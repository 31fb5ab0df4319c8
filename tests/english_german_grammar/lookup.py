"""Find words of the lexicon by their English form."""

from convs2s.english_german_grammar.adjectives import ADJECTIVES, Gradable
from convs2s.english_german_grammar.clauses import Clause, arrange
from convs2s.english_german_grammar.determiners import THE, Determiner, noun_phrase
from convs2s.english_german_grammar.noun_list import ALL_NOUNS
from convs2s.english_german_grammar.nouns import Noun
from convs2s.english_german_grammar.phrases import PERIOD, Phrase, chain, text_of
from convs2s.english_german_grammar.verb_list import ALL_VERBS
from convs2s.english_german_grammar.verbs import Verb


def noun(english: str) -> Noun:
    return next(noun for noun in ALL_NOUNS if noun.english[0] == tuple(english.split()))


def verb(base: str, frame: str) -> Verb:
    return next(verb for verb in ALL_VERBS if verb.base == base and verb.frame == frame)


def adjective(english: str, kind: str) -> Gradable:
    return next(item for item in ADJECTIVES[kind] if item.positive.english == (english,))


def np(english: str, case: int, number: int = 0, first: Determiner = THE) -> Phrase:
    return noun_phrase(noun(english), case, number, first)


def texts(words: Phrase) -> tuple[str, str]:
    return text_of(words.english), text_of(words.german)


def said(clause: Clause, place: int, question: bool = False) -> tuple[str, str]:
    return texts(chain(arrange(clause, place, question), PERIOD))


def linked(words: Phrase) -> set[tuple[str, str]]:
    return {(words.english[a], words.german[b]) for a, b in words.links}
