"""The rows of words; `test_fast_align` compares their values with a plain reference."""

from pathlib import Path

import pytest

from convs2s.base.parallel import Threads
from convs2s.text.alignment import translation_table
from convs2s.text.alignment.translation_table import POSITION_BITS, Rows, Table, digamma
from tests.text.alignment.corpora import number

EULER = 0.577215664901532860606512


@pytest.mark.parametrize("batch", [1, 3, 1 << 24])
def test_a_word_has_its_occurrences_and_a_value_for_each_word_it_occurs_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, batch: int
) -> None:
    """By hand: records begin at 0, 4, 7 and 9; x occurs with a and b, twice with b in the last pair."""
    monkeypatch.setattr(translation_table, "BATCH_WORDS", batch)
    corpus, _ = number(tmp_path, [("a b", "x y"), ("a", "y"), ("", "x"), ("b", "z x x")])
    with Threads(2) as threads:
        table = Table(tmp_path / "table", corpus.source, corpus.target, threads)
        table.write_values()
        found: list[Rows] = list(table.map(lambda rows: rows))
    occurrences = [place for rows in found for place in rows.occurrences.tolist()]
    places = [(place >> POSITION_BITS, place & 7) for place in occurrences]
    assert places == [(0, 0), (9, 1), (9, 2), (0, 1), (4, 0), (9, 0)]
    assert table.places.tolist() == [0, 3, 5, 6]
    assert table.starts.tolist() == [0, 2, 4, 5]
    assert [value for rows in found for value in rows.values.tolist()] == [1.0] * 5


def test_digamma_has_its_known_values() -> None:
    """digamma(1) = -gamma, digamma(1/2) = -gamma - 2 log 2, digamma(x + 1) = digamma(x) + 1/x."""
    assert digamma(1.0) == pytest.approx(-EULER, rel=1e-12)
    assert digamma(0.01) == pytest.approx(digamma(1.01) - 100.0, rel=1e-12)
    assert digamma(0.5) == pytest.approx(-EULER - 2 * 0.6931471805599453, rel=1e-12)
    assert digamma(1e6) == pytest.approx(13.815510557964274 - 0.5e-6, rel=1e-12)
