"""The built-in aligner against a plain reference, true alignments and systran-align."""

import errno
import gzip
import math
import random
import re
import threading
from collections import defaultdict
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks._aligners import PairLinks, systran
from benchmarks.align import alignment_error_rate, equal_entries
from convs2s.text.alignment import fast_align, posteriors, word_ids
from convs2s.text.alignment.fast_align import Direction, align
from convs2s.text.alignment.link_counting import build_dictionary
from convs2s.text.alignment.posteriors import FLOOR, digammas, given_words
from convs2s.text.alignment.word_ids import Corpus
from tests.text.alignment.corpora import number, pack, unpack
from tests.text.alignment.test_diagonal_prior import distance_by_fast_align

Pairs = list[tuple[list[str], list[str]]]


def numbered(folder: Path, pairs: Pairs) -> tuple[Corpus, list[list[str]]]:
    """Write and number a corpus; return it with each side's words."""
    return number(folder, [(" ".join(source), " ".join(target)) for source, target in pairs])


def aligned(folder: Path, pairs: Pairs, iterations: int = 5) -> list[PairLinks]:
    """Write and align a corpus."""
    return unpack(align(numbered(folder, pairs)[0], iterations, folder))


def permuted(count: int) -> Pairs:
    """Return pairs whose target is the source word for word, neighbors swapped."""
    generator = random.Random(5)
    pairs = []
    for _ in range(count):
        numbers = [int(generator.random() ** 2 * 40) for _ in range(2 + int(generator.random() * 8))]
        order = list(range(len(numbers)))
        for k in range(0, len(order) - 1, 2):
            if generator.random() < 0.5:
                order[k], order[k + 1] = order[k + 1], order[k]
        pairs.append(([f"s{n}" for n in numbers], [f"t{numbers[i]}" for i in order]))
    return pairs


@dataclass
class Reference:
    """One direction of the model in plain Python, on dictionaries of words, in double precision."""

    pairs: list[tuple[list[str], list[str]]]
    """Given and generated words."""
    tension: float = 4.0
    t: dict[str, dict[str, float]] = field(default_factory=dict)

    def scores(self, given: list[str], generated: list[str], j: int) -> list[float]:
        """Return p(word j, linked with each given word); the null word comes first."""
        n, m = len(given), len(generated)
        prior = [math.exp(-self.tension * abs(i / n - (j + 1) / m)) for i in range(1, n + 1)]
        shares = [0.08] + [0.92 * p / sum(prior) for p in prior]
        words = ["<null>", *given]
        if not self.t:
            return shares
        return [share * self.t[word][generated[j]] for share, word in zip(shares, words, strict=True)]

    def iterate(self, fit_tension: bool) -> None:
        """Run one iteration."""
        counts: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(float))
        distance = 0.0
        words = 0
        for given, generated in self.pairs:
            for j, word in enumerate(generated):
                scores = self.scores(given, generated, j)
                words += 1
                for i, (other, score) in enumerate(zip(["<null>", *given], scores, strict=True)):
                    counts[other][word] += score / sum(scores)
                    if i:
                        distance += abs(i / len(given) - j / len(generated)) * score / sum(scores)
        for _ in range(8 if fit_tension else 0):
            lengths = ((len(given), len(generated)) for given, generated in self.pairs)
            model_distance = sum(distance_by_fast_align(n, m, self.tension) for n, m in lengths)
            gradient = (model_distance - distance) / words
            self.tension = min(max(self.tension + 20 * gradient, 0.1), 14.0)
        self.t = {}
        for other, row in counts.items():
            counts_and_total = [c + 0.01 for c in row.values()]
            counts_and_total.append(sum(counts_and_total))
            *logarithms, total = digammas(np.array(counts_and_total)).tolist()
            self.t[other] = {
                word: math.exp(logarithm - total) for word, logarithm in zip(row, logarithms, strict=True)
            }

    def links(self) -> list[int]:
        """Return the given position of each generated word, or -1."""
        rows = [self.scores(*pair, j) for pair in self.pairs for j in range(len(pair[1]))]
        return [row.index(max(row)) - 1 for row in rows]


def probabilities(direction: Direction, *words: list[str]) -> Iterator[tuple[tuple[str, str], float]]:
    """Yield ((given word, generated word), p(generated | given)) for the words that occur together."""
    given, generated = words
    table = direction.table
    for word in range(len(table.places) - 1):
        met: dict[int, None] = {}
        for occurrence in table.occurrences[table.places[word] : table.places[word + 1]]:
            met |= dict.fromkeys(given_words(table, occurrence)[0].tolist())
        values = table.values[table.starts[word] : table.starts[word + 1]].tolist()
        for other, value in zip(met, values, strict=True):
            yield (given[other], generated[word]), max(value * direction.scales[other], FLOOR)


@pytest.mark.parametrize("iterations", [1, 2, 4])
def test_tables_tensions_and_links_are_those_of_a_plain_reference(tmp_path: Path, iterations: int) -> None:
    """Neither rows, ranges, float32 storage nor closed forms must affect the result."""
    pairs = [pair for pair in permuted(30) if len({*pair[0]}) == len(pair[0])]  # a repeated word may tie
    references = Reference(pairs), Reference([(target, source) for source, target in pairs])
    corpus, (source, target) = numbered(tmp_path, pairs)
    with ThreadPoolExecutor(2) as threads:
        forward = Direction(corpus.source, corpus.target, tmp_path / "forward", threads)
        backward = Direction(corpus.target, corpus.source, tmp_path / "backward", threads)
        for iteration in range(iterations):
            for model in (*references, forward, backward):
                model.iterate(fit_tension=iteration > 0)
        chosen = [direction.choose().tolist() for direction in (forward, backward)]
    tables = dict(probabilities(forward, source, target)), dict(probabilities(backward, target, source))
    for reference, direction, table, links in zip(
        references, (forward, backward), tables, chosen, strict=True
    ):
        assert direction.tension == pytest.approx(reference.tension, rel=1e-5)
        wanted = {(e, f): p for e, row in reference.t.items() if e != "<null>" for f, p in row.items()}
        assert table == pytest.approx(wanted, rel=1e-4, abs=1e-30)
        assert links == reference.links()


@pytest.mark.parametrize(("block", "threads"), [(1, 1), (7, 3), (50, 2)])
def test_neither_blocks_nor_threads_change_the_alignment(
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    block: int,
    threads: int,
) -> None:
    """DVC compares bytes, so every machine must give the same ones; the reports show every tension."""
    pairs = permuted(60)
    wanted = aligned(tmp_path, pairs)
    report = capfd.readouterr().err
    monkeypatch.setattr(word_ids, "BLOCK", block)
    monkeypatch.setattr(fast_align, "cores", lambda: threads)
    assert aligned(tmp_path, pairs) == wanted
    assert capfd.readouterr().err == report
    assert report.startswith("align: iteration 1 of 5: forward tension 4.000; backward tension 4.000\n")
    assert report.endswith(f"\nalign: linked {len(wanted)} sentence pairs\n")
    assert {path.suffix for path in tmp_path.iterdir()} == {"", ".npy"}  # no temporary folder


def state(corpus: Corpus, folder: Path) -> list[bytes]:
    """Return all numbers of a direction's model after three iterations, and the links that it chooses."""
    folder.mkdir()
    with ThreadPoolExecutor(fast_align.cores()) as threads:
        direction = Direction(corpus.source, corpus.target, folder / "forward", threads)
        for iteration in range(3):
            direction.iterate(fit_tension=iteration > 0)
        arrays = direction.table.values, direction.scales, direction.nulls, direction.choose()
        return [*(array.tobytes() for array in arrays), direction.tension.hex().encode()]


@pytest.mark.parametrize("threads", [2, 3, 8])
def test_all_sums_are_the_same_for_any_number_of_threads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, threads: int
) -> None:
    """Sums of rounded numbers depend on their order, which differs between threads; links rarely show it."""
    corpus, _ = numbered(tmp_path, permuted(200))
    monkeypatch.setattr(fast_align, "cores", lambda: 1)
    wanted = state(corpus, tmp_path / "one")
    monkeypatch.setattr(fast_align, "cores", lambda: threads)
    assert state(corpus, tmp_path / "several") == wanted


@pytest.mark.parametrize("loop", ["count_values", "expect_words", "choose_links"])
def test_all_cores_share_the_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, loop: str) -> None:
    """Each range of words waits for as many as there are cores: if fewer ran, the wait would break."""
    side_by_side = threading.Barrier(3, timeout=30)
    function = getattr(posteriors, loop)

    def wait_and_run(*arguments: Any) -> Any:
        side_by_side.wait()
        return function(*arguments)

    monkeypatch.setattr(fast_align, "cores", lambda: 3)
    monkeypatch.setattr(posteriors, loop, wait_and_run)
    assert all(aligned(tmp_path, permuted(20)))


def test_empty_sides_have_no_links_and_change_nothing_else(tmp_path: Path) -> None:
    """Line n of the links must belong to pair n, even if pairs are skipped."""
    pairs = permuted(6)
    with_empty: Pairs = [(["lost"], []), *pairs[:3], ([], []), ([], ["verloren"]), *pairs[3:]]
    wanted = aligned(tmp_path, pairs)
    assert aligned(tmp_path, with_empty) == [[], *wanted[:3], [], [], *wanted[3:]]


def test_a_corpus_without_words_has_no_links(tmp_path: Path) -> None:
    """With nothing to count, there must be no division by zero."""
    assert aligned(tmp_path, []) == []
    assert aligned(tmp_path, [([], ["x"]), ([], [])]) == [[], []]


def test_links_and_dictionary_agree_with_systran_align_on_some_real_text(
    tmp_path: Path, shared_data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """500 pairs are enough to expose a wrong formula; on so few, near-ties lower the agreement a little."""
    pytest.importorskip("systran_align", reason="it has wheels for Python 3.11 on Linux x86-64 only")
    monkeypatch.setenv("OMP_NUM_THREADS", "1")  # its idle threads would keep cores busy
    sides = []
    for language in ("en", "de"):
        path = shared_data / "multi30k" / f"train.{language}.gz"
        with gzip.open(path, "rt", encoding="utf-8", newline="\n") as stream:
            sides.append([re.findall(r"\w+|[^\w\s]", line.lower()) for line in islice(stream, 500)])
    pairs = list(zip(*sides, strict=True))
    ours = aligned(tmp_path, pairs)
    corpus, words = numbered(tmp_path, pairs)
    theirs = list(systran(tmp_path / "s", tmp_path / "t", 5, tmp_path))
    assert 1.0 - alignment_error_rate(ours, theirs) >= 0.95
    one, other = (
        {entry.source: entry.target for entry in build_dictionary(corpus, words, pack(links))}
        for links in (ours, theirs)
    )
    assert equal_entries(one, other, tmp_path / "s") >= 0.93


def test_a_full_disk_is_an_error_before_anything_is_computed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Writing to a mapped file that has no room would end the process without a message."""

    def refuse(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(fast_align.os, "posix_fallocate", refuse)
    with pytest.raises(OSError, match=r"needs 0\.00 GiB more of disk space .*No space left.* Free some"):
        aligned(tmp_path, permuted(6))
    assert {path.suffix for path in tmp_path.iterdir()} == {"", ".npy"}
