from random import Random

from convs2s.english_german_grammar.adverbials import (
    AGO,
    DATE,
    PAST_KINDS,
    ago,
    calendar,
    duration,
    phrases,
    time,
)


def test_ago_is_a_preposition_in_german() -> None:
    """In German, "three days ago" is "vor drei Tagen": the last English word comes first."""
    when = ago(Random(1).getrandbits)
    assert when.english[2] == "ago"
    assert when.german[0] == "vor"
    assert when.german[2].endswith("n")
    assert sorted(when.links) == [(0, 1), (1, 2), (2, 0)]


def test_duration_takes_the_accusative() -> None:
    """In German, "for three days" is "drei Tage lang"."""
    bits = Random(2).getrandbits
    units = {(span.english[2], span.german[1]) for span in (duration(bits) for _ in range(200))}
    assert units == {
        ("days", "Tage"), ("weeks", "Wochen"), ("years", "Jahre"), ("months", "Monate"), ("hours", "Stunden"),
    }  # fmt: skip


def test_day_and_month_swap() -> None:
    """In German, "on May 3" is "am 3. Mai"."""
    date = calendar(Random(3).getrandbits, DATE)
    assert date.german[1] == date.english[2] + "."
    assert (2, 1) in date.links


def test_time_fits_the_tense() -> None:
    """Past times never go with the future."""
    bits = Random(4).getrandbits
    future = {" ".join(time(bits, "future").english) for _ in range(500)}
    past = {" ".join(time(bits, "past").english) for _ in range(500)}
    assert "tomorrow" in future
    assert "yesterday" in past
    assert not any(word in when for when in future for word in ("yesterday", "last", "ago"))
    assert not any(word in when for when in past for word in ("tomorrow", "next"))
    assert AGO in PAST_KINDS


def test_entries_may_name_their_links() -> None:
    """In German, "in a hurry" is two words; the article is linked with the noun."""
    (entry,) = set(phrases("in a hurry = in Eile = 0-0 1-1 2-1"))
    assert entry.links == ((0, 0), (1, 1), (2, 1))
