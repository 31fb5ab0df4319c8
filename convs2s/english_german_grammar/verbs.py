"""Verbs in both languages: all forms, derived from the few that must be given."""

import re
from dataclasses import dataclass

INSEPARABLE = ("be", "ge", "er", "ver", "zer", "ent", "emp", "miss", "über", "unter", "wieder")
VOICED = re.compile(r"[^aeiou]*[aeiou][bdgklmnprt]")
"""One short syllable, whose last letter is doubled: stop, stopped."""


@dataclass(frozen=True, slots=True, eq=False)
class Verb:
    """A verb with its forms in both languages, and the subjects and objects it takes."""

    base: str
    third: str
    past: str
    past_participle: str
    gerund: str
    particle: tuple[str, ...]
    """English words that follow the verb and belong to it: turn *on*."""
    present: tuple[str, ...]
    """German by slot, see `Phrase.slot`."""
    preterite: tuple[str, ...]
    infinitive: str
    """Without the separable prefix."""
    participle: str
    """With prefix: angerufen."""
    prefix: str
    """Separable prefix, or empty."""
    uses_sein: bool
    stative: bool
    """True if English has no progressive, and neither language a passive."""
    reflexive: bool
    frame: str
    """What it takes: I nothing, T accusative, D dative, G both, E both with English "to", P preposition,
    M direction, L place, S that-clause, W if-clause, Z infinitive."""
    subjects: tuple[str, ...]
    objects: tuple[str, ...]
    english_preposition: str
    german_preposition: str
    preposition_dative: bool


def parse_verb(line: str) -> Verb:
    """Read `english frame subjects>objects german... [flags]`.

    English is `base[/past/participle]` with words joined by "_"; German is `[prefix|]infinitive`,
    then for strong verbs the third person present, preterite and participle. The frame may name
    prepositions: `P=for:auf:A`, with A for accusative and D for dative. Flags: +s perfect with sein,
    +t stative, +r reflexive.
    """
    words = line.split()
    flags = "".join(word[1] for word in words if word.startswith("+"))
    english, frame, kinds, german, *strong = [word for word in words if not word.startswith("+")]
    frame, _, prepositions = frame.partition("=")
    english_preposition, german_preposition, case = prepositions.split(":") if prepositions else ("", "", "A")
    base, past, past_participle, particle = english_parts(english)
    # the preposition opens the object: "wait" + "for the bus"
    particle = particle[:-1] if english_preposition else particle
    subjects, _, objects = kinds.partition(">")
    prefix, _, infinitive = german.rpartition("|")
    third, preterite, participle = strong if strong else weak_forms(infinitive)
    return Verb(
        base, english_third(base), past, past_participle, english_gerund(base), particle,
        present_forms(infinitive, third), preterite_forms(preterite), infinitive, prefix + participle, prefix,
        "s" in flags, "t" in flags, "r" in flags, frame, tuple(subjects.split("+")),
        tuple(objects.split("+")) if objects else (), english_preposition, german_preposition, case == "D",
    )  # fmt: skip


def english_parts(english: str) -> tuple[str, str, str, tuple[str, ...]]:
    """Return base, past, participle and the words that follow: look_for -> look looked looked (for)."""
    whole, *forms = english.split("/")
    base, *particle = whole.split("_")
    past, participle = forms if forms else (regular_past(base),) * 2
    return base, past, participle, tuple(particle)


def english_third(base: str) -> str:
    """Return the third person singular."""
    if base == "have":
        return "has"
    if base.endswith("y") and base[-2] not in "aeiou":
        return base[:-1] + "ies"
    return base + ("es" if base.endswith(("s", "x", "z", "ch", "sh", "o")) else "s")


def regular_past(base: str) -> str:
    """Return the regular past form, which is the participle as well."""
    if base.endswith("y") and base[-2] not in "aeiou":
        return base[:-1] + "ied"
    if base.endswith("e"):
        return base + "d"
    return base + (base[-1] if VOICED.fullmatch(base) else "") + "ed"


def english_gerund(base: str) -> str:
    """Return the form in -ing."""
    if base.endswith("e") and not base.endswith("ee"):
        return base[:-1] + "ing"
    # begin, forget and the like are stressed on the last syllable
    doubled = VOICED.fullmatch(base) or base in {"begin", "forget", "admit"}
    return base + (base[-1] if doubled else "") + "ing"


def stem_of(infinitive: str) -> str:
    """Return the infinitive without -en or -n."""
    return infinitive[: -2 if infinitive.endswith("en") else -1]


def needs_e(stem: str) -> bool:
    """Return whether -st and -t need an -e- before them: arbeitet, öffnet, but lernt."""
    return stem.endswith(("t", "d")) or bool(re.search(r"(ch|[^aeiouäöülrmnh])[mn]$", stem))


def weak_forms(infinitive: str) -> tuple[str, str, str]:
    """Return third person present, preterite and participle of a weak verb, given without its prefix."""
    stem = stem_of(infinitive)
    link = "e" if needs_e(stem) else ""
    bare = infinitive.endswith("ieren") or infinitive.startswith(INSEPARABLE)
    return stem + link + "t", stem + link + "te", ("" if bare else "ge") + stem + link + "t"


def present_forms(infinitive: str, third: str) -> tuple[str, ...]:
    """Return ich, du, er, wir, ihr, sie, Sie."""
    stem = stem_of(infinitive)
    if third == "ist":
        return ("bin", "bist", "ist", "sind", "seid", "sind", "sind")
    first = stem[:-2] + "le" if stem.endswith("el") else stem + "e"
    plural_you = stem + ("et" if needs_e(stem) else "t")
    if not third.endswith("t"):  # weiß, mag: the first person is the third
        first = third
        second = third + ("t" if third.endswith("ß") else "st")
    elif stem.endswith("t") and not third.endswith("et"):  # hält, tritt
        second = third + "st"
    else:
        trunk = third[:-1]
        second = trunk + ("t" if trunk.endswith(("s", "ß", "z", "x")) else "st")
    return (first, second, third, infinitive, plural_you, infinitive, infinitive)


def preterite_forms(third: str) -> tuple[str, ...]:
    """Return ich, du, er, wir, ihr, sie, Sie."""
    plural = third + ("n" if third.endswith("e") else "en")
    link = "e" if third.endswith(("t", "d", "s", "ß", "z")) else ""
    return (third, third + link + "st", third, plural, third + ("" if third.endswith("e") else link) + "t",
            plural, plural)  # fmt: skip
