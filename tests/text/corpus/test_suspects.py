"""Pairs that are probably bad translations, planted in real ones."""

import itertools
from collections.abc import Callable

import pytest

from convs2s.text.corpus.scripts import RANGES, SCRIPTS, script_pattern, writer_of
from convs2s.text.corpus.suspects import KINDS, SAMPLED, PairSample, describe_suspects, find_suspects
from convs2s.text.languages import NAMES
from tests.corpus import pairs

Pairs = list[tuple[str, str]]
CLEAN = pairs(1900)
LANGUAGES = ("en", "de")
CYRILLIC = str.maketrans("abcdefghijklmnopqrstuvwxyzäöüß", "абцдефгхийклмнопярстуввхызаоус")
UKRAINIAN = [(source, target.lower().translate(CYRILLIC)) for source, target in CLEAN]
"""German in Cyrillic letters, for a language of another script."""


def shift(clean: Pairs) -> Pairs:
    """Move the targets of lines 501 to 900 by two lines."""
    sources, targets = (list(side) for side in zip(*clean, strict=True))
    targets[500:900] = [*targets[502:900], *targets[500:502]]
    return list(zip(sources, targets, strict=True))


def swap(clean: Pairs) -> Pairs:
    return [pair[::-1] if 300 <= i < 600 else pair for i, pair in enumerate(clean)]


def untranslated(clean: Pairs) -> Pairs:
    return [(pair[0], f"{pair[0]} .") if 100 <= i < 200 else pair for i, pair in enumerate(clean)]


def tagged(clean: Pairs) -> Pairs:
    return [(f"<b>{pair[0]}</b>", pair[1]) if i % 20 == 0 else pair for i, pair in enumerate(clean)]


PLANTED: dict[str, tuple[Pairs, tuple[str, str], str, int, int]] = {
    "heading": ([("English", "German"), *CLEAN], LANGUAGES, "heading", 1, 1),
    "heading of codes": ([("en", "de"), *CLEAN], LANGUAGES, "heading", 1, 1),
    "shifted": (shift(CLEAN), LANGUAGES, "shifted", 400, 501),
    "swapped": (swap(CLEAN), LANGUAGES, "swapped", 100, 301),
    "swapped, a language without a known script": (swap(CLEAN), ("en", "xx"), "swapped", 100, 301),
    "swapped, a script in common": (swap(CLEAN), ("en", "sr"), "swapped", 100, 301),
    "swapped, by script": (swap(UKRAINIAN), ("en", "uk"), "swapped", 300, 301),
    "all swapped, by script": ([pair[::-1] for pair in UKRAINIAN], ("en", "uk"), "swapped", 1900, 1),
    "other script": (UKRAINIAN, ("en", "el"), "target_script", 1900, 1),
    "one language": (untranslated(CLEAN), LANGUAGES, "one_language", 60, 101),
    "untranslated": (untranslated(UKRAINIAN), ("en", "uk"), "target_script", 100, 101),
    "copies": ([*CLEAN, *((s, s) for s, _ in CLEAN[:500])], LANGUAGES, "copies", 500, 1901),
    "markup": (tagged(CLEAN), LANGUAGES, "markup", 95, 1),
    "entities": ([(s, t.replace(" ", "&nbsp;")) for s, t in CLEAN], LANGUAGES, "markup", 1890, 1),
    "repeats": ([*CLEAN, *CLEAN[:300]], LANGUAGES, "repeats", 300, 0),
}


@pytest.mark.parametrize(
    ("corpus", "languages"), [(CLEAN, LANGUAGES), (UKRAINIAN, ("en", "uk")), (CLEAN, ("xx", "yyy"))]
)
def test_a_clean_corpus_has_no_suspects(corpus: Pairs, languages: tuple[str, str]) -> None:
    """An alarm that is always there is not heard."""
    found = find_suspects(corpus, languages)
    assert {kind: suspects.pairs for kind, suspects in found.items() if suspects.pairs} == {}
    assert list(describe_suspects(found, languages)) == []


@pytest.mark.parametrize(("corpus", "languages", "kind", "least", "first"), PLANTED.values(), ids=PLANTED)
def test_planted_suspects_are_found(
    corpus: Pairs, languages: tuple[str, str], kind: str, least: int, first: int
) -> None:
    """The warning says how many there are, where to look, and what to do.

    By words alone, only clear cases count, so there `least` is less than what was planted.
    """
    found = find_suspects(corpus, languages)
    assert found[kind].pairs >= least and found[kind].first in range(first, first + 10)
    warnings = list(describe_suspects(found, languages))
    (warning,) = [warning for warning in warnings if KINDS[kind].fault in warning]
    assert warning.startswith(f"train: {found[kind].pairs:,} pair")
    assert f"line {found[kind].first:,} of data/raw/train" in warning or kind == "repeats"


@pytest.mark.parametrize("plant", [shift, swap, untranslated, tagged])
def test_nothing_else_is_suspected(plant: Callable[[Pairs], Pairs]) -> None:
    """One mistake must not look like another."""
    found = find_suspects(plant(CLEAN), LANGUAGES)
    assert len([kind for kind, suspects in found.items() if suspects.pairs]) == 1


def test_a_summary_may_have_the_language_of_its_text() -> None:
    """With one language on both sides, words and scripts cannot tell the sides."""
    found = find_suspects([(source, source[: len(source) // 2]) for source, _ in CLEAN], ("en", "en"))
    assert {kind for kind, suspects in found.items() if suspects.pairs} <= {"repeats"}


@pytest.mark.parametrize(
    "text", ["1 < 2 & 3 > 2", "R&D", "<3", "Qintex <QINA.S> said", "me <me@example.org>", "a;b & c;"]
)
def test_signs_are_no_markup(text: str) -> None:
    """News and chats have them."""
    assert find_suspects([(text, text)], LANGUAGES)["markup"].pairs == 0


def test_few_lines_are_no_block() -> None:
    """A corpus may be as small as that, or empty."""
    for count in (0, 1, 60, 149):
        assert find_suspects(CLEAN[:count], LANGUAGES)["shifted"].pairs == 0


def test_a_sample_is_spread_over_the_corpus() -> None:
    """A corpus may consist of files of different kinds, one after the other."""
    sample = PairSample()
    for line in range(1, 5 * SAMPLED):
        sample.add(line, ("a", "b"))
    lines = [line for line, _ in sample.pairs]
    strides = {after - before for before, after in itertools.pairwise(lines)}
    assert (lines[0], strides) == (1, {8}) and lines[-1] > 5 * SAMPLED - 9


def test_each_language_has_a_script() -> None:
    """Of a language without one, nothing is checked; those with a name have one."""
    assert NAMES.keys() <= SCRIPTS.keys()
    assert {script for scripts in SCRIPTS.values() for script in scripts} == RANGES.keys()


@pytest.mark.parametrize(
    ("language", "own", "other"),
    [
        ("uk", "Привіт", "Hello"), ("de", "über", "Привіт"), ("ja", "カタカナ", "한국어"),
        ("ja", "漢字", "abc"), ("ko", "한국어", "かな"), ("el", "Ελληνικά", "abc"), ("sr", "ћирилица", "ελ"),
        ("sr", "latinica", "ελ"), ("th", "ไทย", "ລາວ"), ("he", "עברית", "عربي"), ("hi", "हिन्दी", "বাংলা"),
        ("vi", "Tiếng", "中文"),
    ],
)  # fmt: skip
def test_a_script_is_known_by_its_letters(language: str, own: str, other: str) -> None:
    """Text in another script cannot be in the language."""
    assert writer_of(language)(own) and not writer_of(language)(other)


def test_a_script_has_its_name_in_regular_expressions() -> None:
    """The advice is a command for grep, which knows Japanese kana by two names."""
    assert script_pattern("uk") == r"[\p{Cyrillic}]"
    assert script_pattern("ja") == r"[\p{Hiragana}\p{Katakana}\p{Han}]"
