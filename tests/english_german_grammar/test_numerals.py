from random import Random

import pytest

from convs2s.english_german_grammar.numerals import (
    clock_time,
    decimal,
    digital_time,
    english_number,
    german_number,
    price,
    thousands,
    year,
)


@pytest.mark.parametrize(
    ("n", "english", "german"),
    [
        (2, "two", "zwei"), (12, "twelve", "zwölf"), (17, "seventeen", "siebzehn"), (20, "twenty", "zwanzig"),
        (21, "twenty-one", "einundzwanzig"), (36, "thirty-six", "sechsunddreißig"),
        (99, "ninety-nine", "neunundneunzig"), (70, "seventy", "siebzig"),
    ],
)  # fmt: skip
def test_number_words(n: int, english: str, german: str) -> None:
    """German says units before tens."""
    assert (english_number(n), german_number(n)) == (english, german)


def test_digits_swap_point_and_comma() -> None:
    """1,200.5 is 1.200,5 in German; swapping back gives the same number."""
    swap = str.maketrans(".,", ",.")
    for kind in (thousands, decimal, price):
        bits = Random(3).getrandbits
        for _ in range(50):
            english, german = kind(bits)
            assert german.translate(swap) == english
            assert any(mark in english for mark in ",.") or int(english) < 1000


def test_half_past_counts_towards_the_coming_hour() -> None:
    """In German, "half past two" is "halb drei", and "half past twelve" is "halb eins"."""
    bits = Random(5).getrandbits
    times = {" ".join(time.english): " ".join(time.german) for time in (clock_time(bits) for _ in range(400))}
    assert times["at half past two"] == "um halb drei"
    assert times["at half past twelve"] == "um halb eins"
    assert times["at one o \x01'clock"] == "um ein Uhr"


def test_digital_time_is_split_as_by_the_tokenizer() -> None:
    """English 8:30 is three tokens, German 8.30 is one."""
    time = digital_time(8, 30)
    assert list(time.english) == ["at", "8", "\x01:\x02", "30"]
    assert list(time.german) == ["um", "8.30", "Uhr"]


def test_year_keeps_its_digits() -> None:
    """The year is copied, and "in" becomes "im Jahr"."""
    when = year(Random(1).getrandbits)
    assert when.english[1] == when.german[2]
    assert list(when.german[:2]) == ["im", "Jahr"]
