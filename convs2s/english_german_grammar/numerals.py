"""Numbers as words and digits, clock times and years in both languages."""

from convs2s.english_german_grammar.drawing import Bits, below, chance, draw, listed, zipf
from convs2s.english_german_grammar.phrases import LEFT, RIGHT, Phrase, phrase

ENGLISH_SMALL = listed(
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "
    "seventeen eighteen nineteen"
)
GERMAN_SMALL = listed(
    "null eins zwei drei vier fünf sechs sieben acht neun zehn elf zwölf dreizehn vierzehn fünfzehn sechzehn "
    "siebzehn achtzehn neunzehn"
)
ENGLISH_TENS = listed("ten twenty thirty forty fifty sixty seventy eighty ninety")
GERMAN_TENS = listed("zehn zwanzig dreißig vierzig fünfzig sechzig siebzig achtzig neunzig")
COUNTS = zipf([2, 3, 4, 5, 10, 6, 8, 12, 20, 7, 9, 15, 30, 50, *range(21, 30), *range(31, 100)])
HOURS = zipf(range(1, 13), offset=10)


def english_number(n: int) -> str:
    """Return 1 to 99 in English words: twenty-one."""
    if n < 20:
        return ENGLISH_SMALL[n]
    tens = ENGLISH_TENS[n // 10 - 1]
    return tens if n % 10 == 0 else f"{tens}-{ENGLISH_SMALL[n % 10]}"


def german_number(n: int) -> str:
    """Return 1 to 99 in German words, units before tens: einundzwanzig."""
    if n < 20:
        return GERMAN_SMALL[n]
    tens = GERMAN_TENS[n // 10 - 1]
    unit = "ein" if n % 10 == 1 else GERMAN_SMALL[n % 10]
    return tens if n % 10 == 0 else f"{unit}und{tens}"


def number_words(bits: Bits) -> tuple[str, str]:
    """Draw a count from 2 to 99 in words."""
    n = draw(bits, COUNTS)
    return english_number(n), german_number(n)


def thousands(bits: Bits) -> tuple[str, str]:
    """Draw a large count in digits: 1,200 and 1.200."""
    n = (1 + below(bits, 99)) * 100 if chance(bits, 60) else 100 + below(bits, 99900)
    return f"{n:,}", f"{n:,}".replace(",", ".")


def decimal(bits: Bits) -> tuple[str, str]:
    """Draw a number with one decimal: 3.5 and 3,5."""
    whole, tenth = 1 + below(bits, 30), 1 + below(bits, 9)
    return f"{whole}.{tenth}", f"{whole},{tenth}"


def price(bits: Bits) -> tuple[str, str]:
    """Draw an amount of money: 12.50 and 12,50."""
    euros, cents = 1 + below(bits, 200), (50, 20, 80, 99, 95, 49, 75, 25)[bits(3)]
    return f"{euros}.{cents}", f"{euros},{cents}"


def clock_time(bits: Bits) -> Phrase:
    """Draw "at three o'clock", "at half past two" (um halb drei) or "at 8:30"."""
    hour = draw(bits, HOURS)
    kind = bits(2)
    if kind == 0:
        return digital_time(1 + below(bits, 23), (15, 30, 45, 10, 20, 40, 50, 25)[bits(3)])
    if kind == 1:
        # German counts towards the coming hour.
        coming = german_number(hour % 12 + 1)
        return phrase(f"at half past {english_number(hour)}", f"um halb {coming}", "0-0 1-1 2-1 3-2")
    german = "ein" if hour == 1 else german_number(hour)
    return phrase(f"at {english_number(hour)} o {LEFT}'clock", f"um {german} Uhr", "0-0 1-1 2-2 3-2")


def digital_time(hour: int, minute: int) -> Phrase:
    """Return at 8:30 and um 8.30 Uhr; English tokens are split at the colon."""
    return phrase(f"at {hour} {LEFT}:{RIGHT} {minute}", f"um {hour}.{minute} Uhr", "0-0 1-1 2-1 3-1 1-2")


def year(bits: Bits) -> Phrase:
    """Draw in 1987, which German calls im Jahr 1987."""
    n = 1990 + below(bits, 30) if chance(bits, 60) else 1500 + below(bits, 490)
    return phrase(f"in {n}", f"im Jahr {n}", "0-0 0-1 1-2")
