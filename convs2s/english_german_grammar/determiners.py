"""Determiners, adjective endings and the noun phrases and prepositional phrases built with them."""

from collections.abc import Sequence
from dataclasses import dataclass

from convs2s.english_german_grammar.adjectives import Adjective
from convs2s.english_german_grammar.nouns import PLURAL, Noun
from convs2s.english_german_grammar.phrases import Phrase, diagonal

Table = tuple[tuple[str, ...], ...]
"""By case (nominative, accusative, dative, genitive) and gender (m, f, n, plural)."""


def table(*rows: str) -> Table:
    """Return a table from rows of spaced endings, "-" for none."""
    return tuple(tuple(cell.replace("-", "") for cell in row.split()) for row in rows)


DEFINITE = table("der die das die", "den die das die", "dem der dem den", "des der des der")
DER_WORD = table("er e es e", "en e es e", "em er em en", "es er es er")
EIN_WORD = table("- e - e", "en e - e", "em er em en", "es er es er")
WEAK = table("e e e en", "en e e en", "en en en en", "en en en en")
MIXED = table("er e es en", "en e es en", "en en en en", "en en en en")
STRONG = table("er e es e", "en e es e", "em er em en", "en er en er")
INVARIANT = table("- - - -", "- - - -", "- - - -", "- - - -")


@dataclass(frozen=True, slots=True, eq=False)
class Determiner:
    """The start of a noun phrase: an article, a pronoun, a numeral, an owner, or nothing."""

    english: tuple[tuple[str, ...], tuple[str, ...]]
    """Tokens by number; all are linked to the German word."""
    german: Table
    """Empty strings where German has no determiner."""
    endings: Table
    """Endings of the adjectives that follow."""


def determiner(english: str, stem: str, endings: Table, adjectives: Table) -> Determiner:
    """Return a determiner; English is "singular/plural", or one word for both."""
    singular, _, plural = english.partition("/")
    forms = (tuple(singular.split()), tuple((plural or singular).split()))
    german = tuple(tuple(stem + ending for ending in row) for row in endings)
    return Determiner(forms, german, adjectives)


def possessor(name: str) -> Determiner:
    """Return a name as owner: Anna's house, Annas Haus."""
    return determiner(f"{name} \x01's", name + "s", INVARIANT, STRONG)


def count(english: str, german: str) -> Determiner:
    """Return a number greater than one."""
    return determiner(english, german, INVARIANT, STRONG)


THE = Determiner((("the",), ("the",)), DEFINITE, WEAK)
A = determiner("a", "ein", EIN_WORD, MIXED)
BARE = Determiner(((), ()), INVARIANT, STRONG)
NOT_A = determiner("a/any", "kein", EIN_WORD, MIXED)
NOT_ANY = determiner("any", "kein", EIN_WORD, MIXED)
"""For uncountable nouns: not any bread, kein Brot."""
THIS = determiner("this/these", "dies", DER_WORD, WEAK)
EVERY = determiner("every", "jed", DER_WORD, WEAK)
WHICH = determiner("which", "welch", DER_WORD, WEAK)
MY = determiner("my", "mein", EIN_WORD, MIXED)
YOUR = determiner("your", "dein", EIN_WORD, MIXED)
HIS = determiner("his", "sein", EIN_WORD, MIXED)
HER = determiner("her", "ihr", EIN_WORD, MIXED)
OUR = determiner("our", "unser", EIN_WORD, MIXED)
THEIR = determiner("their", "ihr", EIN_WORD, MIXED)
MANY = determiner("many", "viel", DER_WORD, STRONG)
SOME = determiner("some", "einig", DER_WORD, STRONG)
SEVERAL = determiner("several", "mehrer", DER_WORD, STRONG)
FEW = determiner("few", "wenig", DER_WORD, STRONG)
ALL = determiner("all", "all", DER_WORD, WEAK)
BOTH = determiner("both", "beid", DER_WORD, WEAK)

CONSONANT_SOUND = ("uni", "use", "eu", "one", "ura")
CONTRACTIONS = {
    ("in", "dem"): "im", ("an", "dem"): "am", ("zu", "dem"): "zum", ("zu", "der"): "zur",
    ("bei", "dem"): "beim", ("von", "dem"): "vom", ("in", "das"): "ins", ("an", "das"): "ans",
}  # fmt: skip
DIAGONALS = tuple(diagonal(n) for n in range(12))


def article_before(word: str) -> str:
    """Return a or an."""
    vowel = word[0] in "aeiouAEIOU8" and not word.startswith(CONSONANT_SOUND)
    return "an" if vowel or word.startswith(("hour", "honest")) else "a"


def noun_phrase(
    noun: Noun, case: int, number: int, first: Determiner, adjectives: Sequence[Adjective] = ()
) -> Phrase:
    """Return determiner, adjectives and noun, agreeing in case, gender and number.

    Args:
        noun: simple or compound; all English words of a compound are linked to its one German word.
        case: 0 to 3, see `nouns`.
        number: 0 singular, 1 plural.
        first: the determiner, perhaps `BARE`.
        adjectives: in English order.
    """
    gender = PLURAL if number else noun.gender
    english = list(first.english[number])
    word = first.german[case][gender]
    german = [word] if word else []
    simple = len(english) == len(german)
    links = [] if simple else [(i, 0) for i in range(len(english))]
    for adjective in adjectives:
        if not simple or len(adjective.english) > 1:
            if simple:
                links = list(DIAGONALS[len(english)])
                simple = False
            links += [(len(english) + i, len(german)) for i in range(len(adjective.english))]
        english += adjective.english
        german.append(adjective.stem + first.endings[case][gender])
    words = noun.english[number]
    if not simple or len(words) > 1:
        if simple:
            links = list(DIAGONALS[len(english)])
            simple = False
        links += [(len(english) + i, len(german)) for i in range(len(words))]
    english += words
    german.append(noun.german[number][case])
    if english[0] == "a":
        english[0] = article_before(english[1])
    return Phrase(english, german, DIAGONALS[len(english)] if simple else links, 5 if number else 2)


def prepositional(english: str, german: str, inner: Phrase) -> Phrase:
    """Put a preposition before a phrase; it merges with a definite article: in + dem = im.

    Args:
        english: one or more words, or none; all are linked to the German preposition.
        german: one word.
        inner: a phrase whose first German word, if it is der, dem or das, is an article.
    """
    words = english.split()
    shift = len(words)
    merged = CONTRACTIONS.get((german, inner.german[0]))
    ahead = [(i, 0) for i in range(shift)]
    if merged:
        links = ahead + [(a + shift, b) for a, b in inner.links]
        return Phrase([*words, *inner.english], [merged, *inner.german[1:]], links)
    links = ahead + [(a + shift, b + 1) for a, b in inner.links]
    return Phrase([*words, *inner.english], [german, *inner.german], links)
