"""Adjectives with their degrees in both languages, by what they can describe."""

from dataclasses import dataclass

from convs2s.english_german_grammar.nouns import syllables

IRREGULAR = {"good": ("better", "best"), "bad": ("worse", "worst"), "shy": ("shyer", "shyest")}


@dataclass(frozen=True, slots=True, eq=False)
class Adjective:
    """An adjective in one degree."""

    english: tuple[str, ...]
    stem: str
    """German before an ending: teur-, hoh-, größer-."""
    predicate: str
    """German without ending: teuer."""


@dataclass(frozen=True, slots=True, eq=False)
class Gradable:
    """The three degrees of an adjective; the last two are None if comparison makes no sense."""

    positive: Adjective
    comparative: Adjective | None
    superlative: Adjective | None


def parse_adjective(entry: str) -> Gradable:
    """Read `english german[/stem] [degrees]`: "-" for none, or "größer/größt" where irregular."""
    english, german, *degrees = entry.split()
    predicate, _, stem = german.partition("/")
    positive = Adjective(tuple(english.split("_")), stem or predicate.removesuffix("e"), predicate)
    if degrees == ["-"]:
        return Gradable(positive, None, None)
    comparative = positive.stem + "er"
    hissing = predicate.endswith(("t", "d", "s", "ß", "z", "sch")) and not predicate.endswith(
        ("end", "et", "isch")
    )
    superlative = predicate + ("est" if hissing else "st")
    if degrees:
        comparative, superlative = degrees[0].split("/")
    more, most = english_degrees(positive.english)
    return Gradable(
        positive, Adjective(more, comparative, comparative), Adjective(most, superlative, superlative)
    )


def english_degrees(words: tuple[str, ...]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return comparative and superlative, with -er and -est for short words only."""
    word = words[0]
    if word in IRREGULAR:
        more, most = IRREGULAR[word]
        return (more,), (most,)
    count = syllables(word.removesuffix("e"))
    if len(words) > 1 or count > 2 or (count == 2 and not word.endswith("y")) or word.endswith("ed"):
        return ("more", *words), ("most", *words)
    if word.endswith("y") and word[-2] not in "aeiou":
        word = word[:-1] + "i"
    elif word.endswith("e"):
        word = word[:-1]
    elif count == 1 and word[-1] in "bdgmnt" and word[-2] in "aeiou" and word[-3] not in "aeiou":
        word += word[-1]
    return (word + "er",), (word + "est",)


TABLES = {
    "person": """
    young jung jünger/jüngst; old alt älter/ältest; friendly freundlich; happy glücklich; sad traurig;
    clever klug klüger/klügst; tired müde; famous berühmt; tall groß größer/größt; rich reich;
    poor arm ärmer/ärmst; strong stark stärker/stärkst; lazy faul; diligent fleißig; polite höflich;
    brave mutig; nervous nervös; strict streng; sick krank kränker/kränkst;
    healthy gesund gesünder/gesündest; kind nett; angry wütend; curious neugierig; shy schüchtern;
    honest ehrlich; patient geduldig; experienced erfahren; serious ernst; proud stolz; cheerful fröhlich;
    faithful treu; generous großzügig; modest bescheiden; stubborn stur; careful vorsichtig;
    unknown unbekannt -; foreign fremd -; thin dünn; talented begabt; lonely einsam; jealous eifersüchtig;
    absent-minded zerstreut; gifted talentiert; wise weise; unfriendly unfreundlich; impatient ungeduldig;
    dishonest unehrlich; ambitious ehrgeizig; restless unruhig; cautious behutsam; courageous tapfer;
    grumpy mürrisch""",
    "animal": """
    small klein; big groß größer/größt; young jung jünger/jüngst; old alt älter/ältest; black schwarz -;
    white weiß -; brown braun -; hungry hungrig; wild wild; tame zahm; fast schnell; slow langsam;
    gray grau -; fat dick; beautiful schön; dangerous gefährlich; clever klug klüger/klügst;
    strong stark stärker/stärkst; rare selten; shy scheu; loud laut; wounded verletzt -; nimble flink;
    spotted gefleckt -; striped gestreift -""",
    "food": """
    fresh frisch; warm warm wärmer/wärmst; cold kalt kälter/kältest; sweet süß; delicious lecker;
    hot heiß; good gut besser/best; sour sauer/saur saurer/sauerst; ripe reif; cheap billig;
    healthy gesund gesünder/gesündest; bitter bitter; dry trocken; juicy saftig; rotten faul -;
    salty salzig; strange seltsam; local hiesig -""",
    "thing": """
    new neu; old alt älter/ältest; big groß größer/größt; small klein; beautiful schön; red rot -;
    black schwarz -; expensive teuer/teur teurer/teuerst; good gut besser/best; blue blau -; white weiß -;
    cheap billig; heavy schwer; green grün -; modern modern; broken kaputt -; light leicht; yellow gelb -;
    brown braun -; long lang länger/längst; short kurz kürzer/kürzest; ugly hässlich; clean sauber;
    dirty schmutzig; gray grau -; empty leer -; wooden hölzern -; colorful bunt; practical praktisch;
    strange seltsam; fast schnell; valuable wertvoll; simple einfach; useful nützlich; rusty rostig;
    golden golden -; round rund -; dark dunkel/dunkl dunkler/dunkelst; dark_blue dunkelblau -;
    light_blue hellblau -; dark_green dunkelgrün -; light_green hellgrün -; dark_red dunkelrot -;
    dark_gray dunkelgrau -; light_gray hellgrau -; dark_brown dunkelbraun -; narrow schmal; wide breit;
    flat flach; pointed spitz; smooth glatt; rough rau rauer/rauest; square quadratisch -;
    fragile zerbrechlich; elegant elegant; worthless wertlos; silver silbern -; used gebraucht -;
    foreign ausländisch -; secondhand antiquarisch -; waterproof wasserdicht -; handmade handgemacht -""",
    "place": """
    big groß größer/größt; small klein; old alt älter/ältest; new neu; beautiful schön; modern modern;
    famous berühmt; quiet ruhig; high hoch/hoh höher/höchst; dark dunkel/dunkl dunkler/dunkelst;
    empty leer -; dangerous gefährlich; narrow eng; wide breit; cold kalt kälter/kältest;
    crowded überfüllt -; lonely einsam; historic historisch -; green grün -; deep tief; bright hell;
    medieval mittelalterlich -; remote abgelegen; foggy neblig; snowy verschneit -; ruined verfallen -;
    picturesque malerisch; abandoned verlassen -; flooded überflutet -""",
    "plant": """
    beautiful schön; old alt älter/ältest; small klein; big groß größer/größt; green grün -; red rot -;
    yellow gelb -; white weiß -; young jung jünger/jüngst; rare selten; withered verwelkt -; wild wild -;
    thorny dornig""",
    "event": """
    long lang länger/längst; short kurz kürzer/kürzest; important wichtig; interesting interessant;
    big groß größer/größt; boring langweilig; last letzt -; next nächst -; difficult schwierig;
    successful erfolgreich; exciting spannend; beautiful schön; public öffentlich -; annual jährlich -;
    secret geheim -; unforgettable unvergesslich; chaotic chaotisch; solemn feierlich; tiring anstrengend;
    international international -""",
    "idea": """
    new neu; good gut besser/best; important wichtig; big groß größer/größt; difficult schwierig;
    simple einfach; interesting interessant; strange seltsam; possible möglich -; clear klar;
    final endgültig -; dangerous gefährlich; bad schlecht; clever klug klüger/klügst;
    unexpected unerwartet; common häufig; serious ernst; wrong falsch -; political politisch -;
    economic wirtschaftlich -; scientific wissenschaftlich -; social sozial -; bold kühn;
    controversial umstritten; complicated kompliziert; original originell; superfluous überflüssig;
    brilliant genial; harmless harmlos; unusual ungewöhnlich; doubtful zweifelhaft; ingenious raffiniert;
    absurd absurd""",
}

# Not every adjective can follow "is": *die Sitzung ist letzt.
ATTRIBUTIVE_ONLY = {"letzt", "nächst", "hiesig", "jährlich"}

ADJECTIVES: dict[str, list[Gradable]] = {
    kind: [parse_adjective(entry) for entry in table.split(";")] for kind, table in TABLES.items()
}
SAME = {
    "drink": "food", "stuff": "food", "document": "idea", "openable": "thing", "device": "thing",
    "clothing": "thing", "vehicle": "thing", "building": "place", "spot": "place", "surface": "place",
}  # fmt: skip
"""Classes that use the adjectives of another class."""
ADJECTIVES |= {kind: ADJECTIVES[other] for kind, other in SAME.items()}
