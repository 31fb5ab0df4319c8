"""Which words occur together, and variational Bayes over them, worked out by hand."""

import math
from pathlib import Path

import numpy as np
import pytest

from convs2s.text.alignment.translation_table import (
    EMPTY,
    FLOOR,
    Table,
    build_table,
    digamma,
    find,
    look_up,
    normalize,
)
from convs2s.text.alignment.word_ids import Corpus, number_words
from convs2s.text.corpus.parallel import Threads

EULER = 0.577215664901532860606512


@pytest.fixture
def corpus(tmp_path: Path) -> Corpus:
    """Return 60 pairs whose words have very different frequencies."""
    random = np.random.default_rng(3)
    for name in ("s", "t"):
        lines = [" ".join(map(str, random.geometric(0.1, random.integers(0, 9)))) for _ in range(60)]
        (tmp_path / name).write_text("\n".join(lines) + "\n")
    return number_words(tmp_path / "s", tmp_path / "t", tmp_path)


def test_digamma_has_its_known_values() -> None:
    """digamma(1) = -gamma, digamma(1/2) = -gamma - 2 log 2, digamma(x + 1) = digamma(x) + 1/x."""
    assert digamma(1.0) == pytest.approx(-EULER, rel=1e-12)
    assert digamma(0.5) == pytest.approx(-EULER - 2 * math.log(2), rel=1e-12)
    assert digamma(0.01) == pytest.approx(digamma(1.01) - 100.0, rel=1e-12)
    assert digamma(1e6) == pytest.approx(math.log(1e6) - 0.5e-6, rel=1e-12)


def test_rows_hold_the_target_words_of_the_same_sentences(corpus: Corpus) -> None:
    """Each target word is in its row exactly once, and a lookup finds it there; compared with sets."""
    with Threads(2) as threads:
        table = build_table(corpus, threads)
    chunk = corpus.load(0, corpus.pairs)
    rows: list[set[int]] = [set() for _ in range(corpus.source.vocabulary)]
    for k in range(corpus.pairs):
        for s in chunk.source[chunk.source_offsets[k] : chunk.source_offsets[k + 1]]:
            rows[s].update(chunk.target[chunk.target_offsets[k] : chunk.target_offsets[k + 1]].tolist())
    for s, row in enumerate(rows):
        slots = table.targets[table.starts[s] : table.starts[s + 1]]
        assert sorted(slots[slots != EMPTY].tolist()) == sorted(row)
        assert len(slots) > len(row)  # else the search for a free slot would not end
        assert all(table.targets[find(table, s, t)] == t for t in row)


@pytest.mark.parametrize(("threads", "batch_words"), [(1, 1), (3, 20), (2, 10_000)])
def test_neither_threads_nor_batches_change_the_table(corpus: Corpus, threads: int, batch_words: int) -> None:
    """The layout decides the order of sums, and so the last bit of every probability."""
    with Threads(1) as one, Threads(threads) as several:
        wanted, found = build_table(corpus, one), build_table(corpus, several, batch_words)
    assert found.starts.tolist() == wanted.starts.tolist()
    assert found.targets.tolist() == wanted.targets.tolist()


def test_slots_are_looked_up_cell_by_cell(corpus: Corpus) -> None:
    """Cells go source position by source position, as the posteriors read them."""
    chunk = corpus.load(10, 40)
    cells = chunk.cells()
    slots = np.full(cells[-1], -1, np.int64)
    with Threads(2) as threads:
        table = build_table(corpus, threads)
        threads.share(cells, look_up, chunk, cells, table, slots)
    pairs = [
        (s, t)
        for k in range(30)
        for s in chunk.source[chunk.source_offsets[k] : chunk.source_offsets[k + 1]].tolist()
        for t in chunk.target[chunk.target_offsets[k] : chunk.target_offsets[k + 1]].tolist()
    ]
    assert slots.tolist() == [find(table, s, t) for s, t in pairs]


# Source word 0 occurs with target words 0 and 1, source word 1 with target word 1; slots 2 and 4 are free.
TABLE = Table(np.array([0, 3, 5]), np.array([0, 1, EMPTY, 1, EMPTY], np.int32))


@pytest.mark.parametrize("given_source", [True, False])
def test_probabilities_are_those_of_variational_bayes(given_source: bool) -> None:
    """exp(digamma(c + 0.01) - digamma(sum of c + 0.01)), over the row or over the column."""
    counts = np.array([2.0, 1.0, 0.0, 3.0, 0.0])
    probabilities = np.zeros(5, np.float32)
    normalize(TABLE, given_source, 2, counts, probabilities)
    totals = (3.02, 3.02, 3.01) if given_source else (2.01, 4.02, 4.02)
    wanted = [math.exp(digamma(c + 0.01) - digamma(t)) for c, t in zip((2.0, 1.0, 3.0), totals, strict=True)]
    assert probabilities[[0, 1, 3]].tolist() == pytest.approx(wanted, rel=1e-6)
    assert counts.tolist() == [0.0] * 5


def test_no_probability_becomes_zero() -> None:
    """If all candidates of a word had 0, its posterior would be 0/0."""
    counts = np.array([0.0, 1e12, 0.0, 0.0, 0.0])
    probabilities = np.zeros(5, np.float32)
    normalize(TABLE, True, 2, counts, probabilities)
    assert probabilities[0] == np.float32(FLOOR) >= np.finfo(np.float32).smallest_normal
