"""Which words occur together, and variational Bayes over them, worked out by hand."""

import math
from pathlib import Path

import numpy as np
import pytest

from convs2s.text.alignment import translation_table
from convs2s.text.alignment.translation_table import (
    EMPTY,
    FLOOR,
    Table,
    build_table,
    digamma,
    find,
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
    pairs = len(corpus.source)
    chunk = corpus.load(0, pairs)
    rows: list[set[int]] = [set() for _ in range(corpus.source.vocabulary)]
    for k in range(pairs):
        for s in chunk.source[chunk.source_offsets[k] : chunk.source_offsets[k + 1]]:
            rows[s].update(chunk.target[chunk.target_offsets[k] : chunk.target_offsets[k + 1]].tolist())
    for s, row in enumerate(rows):
        slots = table.targets[table.starts[s] : table.starts[s + 1]]
        assert sorted(slots[slots != EMPTY].tolist()) == sorted(row)
        assert len(slots) > len(row)  # else the search for a free slot would not end
        assert all(table.targets[find(table, s, t)] == t for t in row)


@pytest.mark.parametrize(("threads", "batch_words"), [(1, 1), (3, 20), (2, 10_000)])
def test_neither_threads_nor_batches_change_the_table(
    corpus: Corpus, monkeypatch: pytest.MonkeyPatch, threads: int, batch_words: int
) -> None:
    """The layout decides the order of sums, and so the last bit of every probability."""
    with Threads(1) as one, Threads(threads) as several:
        wanted = build_table(corpus, one)
        monkeypatch.setattr(translation_table, "BATCH_WORDS", batch_words)
        found = build_table(corpus, several)
    assert found.starts.tolist() == wanted.starts.tolist()
    assert found.targets.tolist() == wanted.targets.tolist()


def test_no_probability_becomes_zero() -> None:
    """If all candidates of a word had 0, its posterior would be 0/0."""
    table = Table(np.array([0, 3]), np.array([0, 1, EMPTY], np.int32))
    probabilities = np.zeros(3, np.float32)
    normalize(table, True, 1, np.array([0.0, 1e12, 0.0]), probabilities)
    assert probabilities[0] == np.float32(FLOOR) >= np.finfo(np.float32).smallest_normal
