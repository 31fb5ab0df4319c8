"""Adverbials of time, manner and frequency."""

from convs2s.english_german_grammar.drawing import Bits, below, draw, listed, spread, zipf
from convs2s.english_german_grammar.numerals import clock_time, number_words, year
from convs2s.english_german_grammar.phrases import Phrase, phrase

WEEKDAYS = tuple(
    zip(
        listed("Monday Tuesday Wednesday Thursday Friday Saturday Sunday"),
        listed("Montag Dienstag Mittwoch Donnerstag Freitag Samstag Sonntag"),
        strict=True,
    )
)
MONTHS = tuple(
    zip(
        listed("January February March April May June July August September October November December"),
        listed("Januar Februar März April Mai Juni Juli August September Oktober November Dezember"),
        strict=True,
    )
)
SEASONS = (("spring", "Frühling"), ("summer", "Sommer"), ("fall", "Herbst"), ("winter", "Winter"))
# English, German in the dative plural, as after "vor".
UNITS = (
    ("days", "Tagen"), ("weeks", "Wochen"), ("years", "Jahren"), ("months", "Monaten"), ("hours", "Stunden"),
)  # fmt: skip


def phrases(table: str) -> tuple[Phrase, ...]:
    """Read `english = german [= links]` between semicolons, most frequent first."""
    items = []
    for entry in table.split(";"):
        english, german, *links = entry.split("=")
        items.append(phrase(english, german, links[0] if links else ""))
    return zipf(items)


PAST = phrases("""
    yesterday = gestern; last week = letzte Woche; yesterday evening = gestern Abend;
    last year = letztes Jahr; this morning = heute Morgen; last night = letzte Nacht;
    last month = letzten Monat; back then = damals; last summer = letzten Sommer;
    the day before yesterday = vorgestern; last weekend = letztes Wochenende; recently = neulich;
    yesterday morning = gestern Morgen; long ago = vor langer Zeit = 0-1 1-0 0-2;
    last winter = letzten Winter; once = einst""")
PRESENT = phrases("""
    today = heute; now = jetzt; every day = jeden Tag; every morning = jeden Morgen;
    at the moment = im Moment = 0-0 1-0 2-1; every week = jede Woche; this evening = heute Abend;
    every year = jedes Jahr; these days = heutzutage; this week = diese Woche;
    in the evening = am Abend = 0-0 1-0 2-1; in the morning = am Morgen = 0-0 1-0 2-1;
    on the weekend = am Wochenende = 0-0 1-0 2-1; this year = dieses Jahr; every evening = jeden Abend""")
FUTURE = phrases("""
    tomorrow = morgen; next week = nächste Woche; soon = bald; tomorrow evening = morgen Abend;
    next year = nächstes Jahr; later = später; next month = nächsten Monat;
    next summer = nächsten Sommer; tomorrow afternoon = morgen Nachmittag;
    next weekend = nächstes Wochenende; the day after tomorrow = übermorgen; this evening = heute Abend;
    next spring = nächsten Frühling""")
PERFECT = phrases("""
    today = heute; this week = diese Woche; recently = kürzlich; this morning = heute Morgen;
    lately = in letzter Zeit = 0-0 0-1 0-2""")
FREQUENCY = phrases("""
    often = oft; always = immer; usually = meistens; sometimes = manchmal; rarely = selten; never = nie;
    probably = wahrscheinlich; frequently = häufig; really = wirklich; occasionally = gelegentlich;
    perhaps = vielleicht; hardly = kaum; constantly = ständig""")
PERFECT_FREQUENCY = phrases("""
    already = schon; often = oft; never = nie; finally = endlich; just = gerade; always = immer""")
MANNER = phrases("""
    quickly = schnell; carefully = vorsichtig; slowly = langsam; quietly = leise; alone = allein;
    without help = ohne Hilfe; happily = fröhlich; immediately = sofort; secretly = heimlich;
    patiently = geduldig; loudly = laut; with pleasure = mit Vergnügen; nervously = nervös;
    silently = schweigend; bravely = mutig; by chance = zufällig; in a hurry = in Eile = 0-0 1-1 2-1;
    proudly = stolz; thoroughly = gründlich; politely = höflich; awkwardly = ungeschickt;
    hesitantly = zögernd; voluntarily = freiwillig; skillfully = geschickt; for free = kostenlos;
    on purpose = absichtlich; grudgingly = widerwillig""")

FIXED, CLOCK, DAY, MONTH, SEASON, AGO, YEAR, DATE = range(8)
PAST_KINDS = spread(
    [(FIXED, 50), (CLOCK, 8), (DAY, 9), (MONTH, 5), (SEASON, 4), (AGO, 12), (YEAR, 8), (DATE, 4)]
)
OTHER_KINDS = spread([(FIXED, 66), (CLOCK, 12), (DAY, 10), (MONTH, 4), (SEASON, 4), (DATE, 4)])
GROUPS = {"past": PAST, "present": PRESENT, "future": FUTURE, "perfect": PERFECT}


def time(bits: Bits, group: str) -> Phrase:
    """Draw a time that fits the past, the present, the future or the present perfect."""
    if group == "perfect":
        return draw(bits, PERFECT)
    kind = draw(bits, PAST_KINDS if group == "past" else OTHER_KINDS)
    if kind == FIXED:
        return draw(bits, GROUPS[group])
    if kind == CLOCK:
        return clock_time(bits)
    if kind == AGO:
        return ago(bits)
    return year(bits) if kind == YEAR else calendar(bits, kind)


def ago(bits: Bits) -> Phrase:
    """Draw "three days ago", in German a preposition: vor drei Tagen."""
    english, german = number_words(bits)
    unit, einheit = UNITS[below(bits, len(UNITS))]
    return phrase(f"{english} {unit} ago", f"vor {german} {einheit}", "0-1 1-2 2-0")


def calendar(bits: Bits, kind: int) -> Phrase:
    """Draw a weekday, a month, a season or a date."""
    if kind == DAY:
        english, german = WEEKDAYS[below(bits, 7)]
        return phrase(f"on {english}", f"am {german}")
    if kind == SEASON:
        english, german = SEASONS[bits(2)]
        return phrase(f"in {english}", f"im {german}")
    english, german = MONTHS[below(bits, 12)]
    if kind == MONTH:
        return phrase(f"in {english}", f"im {german}")
    day = 1 + below(bits, 28)
    return phrase(f"on {english} {day}", f"am {day}. {german}", "0-0 1-2 2-1")


def duration(bits: Bits) -> Phrase:
    """Draw "for three hours", in German drei Stunden lang."""
    english, german = number_words(bits)
    unit, einheit = UNITS[below(bits, len(UNITS))]
    accusative = einheit.removesuffix("n") if unit in {"days", "years", "months"} else einheit
    return phrase(f"for {english} {unit}", f"{german} {accusative} lang", "0-2 1-0 2-1")
