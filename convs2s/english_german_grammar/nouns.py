"""Nouns in both languages, with gender, plural and the four German cases; also compounds of them."""

from dataclasses import dataclass
from typing import NamedTuple

VOWELS = "aeiouyäöü"
NOMINATIVE, ACCUSATIVE, DATIVE, GENITIVE = range(4)
MASCULINE, FEMININE, NEUTER, PLURAL = range(4)
"""PLURAL is the fourth column of the tables of endings, where German has no gender."""


@dataclass(frozen=True, slots=True, eq=False)
class Noun:
    """A noun with all its forms; number is 0 (singular) or 1 (plural)."""

    english: tuple[tuple[str, ...], tuple[str, ...]]
    """Tokens by number; more than one for a compound."""
    german: tuple[tuple[str, ...], tuple[str, ...]]
    """Words by number and case."""
    gender: int
    kind: str
    """The semantic class, which decides which verbs and adjectives fit."""
    countable: bool


class Modifier(NamedTuple):
    """The first part of a compound, in German with its linking element: Küchen-, Arbeits-."""

    english: str
    german: str


def parse_noun(entry: str, kind: str) -> Noun:
    """Read `english[/plural] German gender plural`, as in "child/children Kind n er".

    The English plural is regular unless given. The German plural is an ending ("=" for none), with
    "^" before it for umlaut and "!" after it for nouns that end in -n in all cases but one; a word in
    capitals is the plural itself; "-" marks uncountable nouns.
    """
    english, german, gender, code = entry.split()
    singular, _, irregular = english.partition("/")
    first = tuple(singular.split("_"))
    second = tuple(irregular.split("_")) if irregular else (*first[:-1], english_plural(first[-1]))
    plural = german if code == "-" else german_plural(german, code.removesuffix("!"))
    forms = (singular_cases(german, gender, code), plural_cases(plural))
    return Noun((first, second), forms, "mfn".index(gender), kind, code != "-")


def parse_nouns(table: str, kind: str) -> list[Noun]:
    """Read entries between semicolons, most frequent first."""
    return [parse_noun(entry, kind) for entry in table.split(";") if entry.strip()]


def english_plural(word: str) -> str:
    """Return the regular plural."""
    if word.endswith("y") and word[-2] not in VOWELS:
        return word[:-1] + "ies"
    return word + ("es" if word.endswith(("s", "x", "z", "ch", "sh")) else "s")


def umlaut(word: str) -> str:
    """Return the word with its last a, o, u or au changed: Haus -> Häus, Apfel -> Äpfel."""
    for i in reversed(range(len(word))):
        if word[i] in "aouAOU":
            start = i - 1 if word[i] == "u" and i and word[i - 1] in "aA" else i
            changed = {"a": "ä", "o": "ö", "u": "ü", "A": "Ä", "O": "Ö", "U": "Ü"}[word[start]]
            return word[:start] + changed + word[start + 1 :]
    return word


def german_plural(word: str, code: str) -> str:
    """Return the nominative plural by its code, see `parse_noun`."""
    if code[0].isupper():
        return code
    stem = umlaut(word) if code.startswith("^") else word
    return stem + code.removeprefix("^").removeprefix("=")


def singular_cases(word: str, gender: str, code: str) -> tuple[str, ...]:
    """Return the four cases of the singular."""
    if code.endswith("!"):
        weak = word + code[:-1]
        return (word, weak, weak, weak)
    return (word, word, word, word if gender == "f" else word + genitive_ending(word, code))


def genitive_ending(word: str, code: str) -> str:
    """Return -es after a sibilant or a single closed syllable, else -s; loan words (plural -s) take -s."""
    if code == "se":
        return "ses"
    if word.endswith("us") and not word.endswith("aus"):
        return ""  # des Kaktus, but des Hauses
    if word.endswith(("s", "ß", "x", "z", "sch", "st")):
        return "es"
    closed = word[-1] not in VOWELS
    return "es" if closed and syllables(word) == 1 and code != "s" else "s"


def plural_cases(plural: str) -> tuple[str, ...]:
    """Return the four cases of the plural; the dative takes -n if it can."""
    dative = plural if plural.endswith(("n", "s")) else plural + "n"
    return (plural, plural, dative, plural)


def syllables(word: str) -> int:
    """Return the number of groups of vowels."""
    lower = word.lower()
    return sum(c in VOWELS and (i == 0 or lower[i - 1] not in VOWELS) for i, c in enumerate(lower))


def compound(modifiers: tuple[Modifier, ...], head: Noun) -> Noun:
    """Return one German word for several English ones: kitchen table -> Küchentisch.

    Gender, plural and class are the head's. Three equal letters in a row stay, by the rules of 1996.
    """
    words = tuple(modifier.english for modifier in modifiers)
    stem = modifiers[0].german + "".join(modifier.german.lower() for modifier in modifiers[1:])
    english = (words + head.english[0], words + head.english[1])
    singular, plural = (tuple(stem + form.lower() for form in forms) for forms in head.german)
    return Noun(english, (singular, plural), head.gender, head.kind, head.countable)
