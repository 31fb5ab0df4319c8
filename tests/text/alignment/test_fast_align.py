"""The built-in aligner against a plain reference, true alignments and systran-align."""

import gzip
import math
import random
import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from benchmarks._aligners import Pair, systran
from benchmarks.align import alignment_error_rate, equal_entries
from convs2s.base.parallel import Threads
from convs2s.text.alignment import fast_align, translation_table, word_ids
from convs2s.text.alignment.fast_align import Aligner, Direction, align
from convs2s.text.alignment.link_counting import build_dictionary
from convs2s.text.alignment.symmetrization import symmetrize
from convs2s.text.alignment.translation_table import FLOOR, POSITION_BITS, digamma
from convs2s.text.alignment.word_ids import Corpus
from tests.text.alignment.corpora import number, pack, unpack
from tests.text.alignment.test_diagonal_prior import sum_distances

Pairs = list[tuple[list[str], list[str]]]


def numbered(folder: Path, pairs: Pairs) -> tuple[Corpus, list[list[str]]]:
    """Write and number a corpus; return it with each side's words."""
    return number(folder, [(" ".join(source), " ".join(target)) for source, target in pairs])


def aligned(folder: Path, pairs: Pairs, iterations: int = 5) -> list[Pair]:
    """Write and align a corpus."""
    return unpack(align(numbered(folder, pairs)[0], iterations, folder))


def permuted(count: int) -> tuple[Pairs, list[Pair]]:
    """Return pairs whose target is the source word for word, neighbors swapped, and their true links."""
    generator = random.Random(5)
    pairs, truth = [], []
    for _ in range(count):
        numbers = [int(generator.random() ** 2 * 40) for _ in range(2 + int(generator.random() * 8))]
        order = list(range(len(numbers)))
        for k in range(0, len(order) - 1, 2):
            if generator.random() < 0.5:
                order[k], order[k + 1] = order[k + 1], order[k]
        pairs.append(([f"s{n}" for n in numbers], [f"t{numbers[i]}" for i in order]))
        truth.append(sorted((i, j) for j, i in enumerate(order)))
    return pairs, truth


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
        distance, words = 0.0, 0
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
            model_distance = sum(sum_distances(n, m, self.tension) for n, m in lengths)
            gradient = (model_distance - distance) / words
            self.tension = min(max(self.tension + 20 * gradient, 0.1), 14.0)
        self.t = {}
        for other, row in counts.items():
            total = digamma(sum(row.values()) + 0.01 * len(row))
            self.t[other] = {word: math.exp(digamma(c + 0.01) - total) for word, c in row.items()}

    def links(self) -> list[list[int]]:
        """Return for each pair's generated words the given position, or -1."""
        found = []
        for given, generated in self.pairs:
            rows = [self.scores(given, generated, j) for j in range(len(generated))]
            found.append([row.index(max(row)) - 1 for row in rows])
        return found


def probabilities(direction: Direction, *words: list[str]) -> Iterator[tuple[tuple[str, str], float]]:
    """Yield ((given word, generated word), p(generated | given)) for the words that occur together."""
    given, generated = words if direction.table.given.path.name.startswith("source") else words[::-1]
    records = direction.table.given.records().tolist()
    for rows in direction.table.map(lambda rows: rows):
        for r in range(len(rows.places) - 1):
            met: dict[int, None] = {}
            for place in rows.occurrences[rows.places[r] : rows.places[r + 1]].tolist():
                record = place >> POSITION_BITS
                met |= dict.fromkeys(records[record + 2 : record + 2 + records[record + 1]])
            values = rows.values[rows.starts[r] : rows.starts[r + 1]].tolist()
            for word, value in zip(met, values, strict=True):
                p = max(value * direction.scales[word], FLOOR)
                yield (given[word], generated[rows.first + r]), p


@pytest.mark.parametrize("iterations", [1, 2, 4])
def test_tables_tensions_and_links_are_those_of_a_plain_reference(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, iterations: int
) -> None:
    """Neither rows, batches, float32 storage nor closed forms must affect the result."""
    monkeypatch.setattr(translation_table, "BATCH_WORDS", 20)
    pairs = [pair for pair in permuted(30)[0] if len({*pair[0]}) == len(pair[0])]  # a repeated word may tie
    forward, backward = Reference(pairs), Reference([(t, s) for s, t in pairs])
    corpus, words = numbered(tmp_path, pairs)
    with Threads(2) as threads:
        aligner = Aligner(corpus, tmp_path, threads, exact=False)
        for direction in aligner.directions:
            direction.table.write_values()
        for iteration in range(iterations):
            for reference in (forward, backward):
                reference.iterate(fit_tension=iteration > 0)
            aligner.iterate(fit_tension=iteration > 0)
        found = unpack(aligner.link())
        tables = [dict(probabilities(direction, *words)) for direction in aligner.directions]
    assert aligner.forward.tension == pytest.approx(forward.tension, rel=1e-5)
    assert aligner.backward.tension == pytest.approx(backward.tension, rel=1e-5)
    for table, given in ((tables[0], forward), (tables[1], backward)):
        wanted = {(e, f): p for e, row in given.t.items() if e != "<null>" for f, p in row.items()}
        assert table == pytest.approx(wanted, rel=1e-4, abs=1e-30)
    for links, one, other in zip(found, forward.links(), backward.links(), strict=True):
        rows = np.zeros((len(one) + len(other), 2), np.int32)
        count = symmetrize(np.array(one, np.int32), np.array(other, np.int32), rows)
        assert links == [tuple(link) for link in rows[:count].tolist()]


@pytest.mark.parametrize(("batch", "threads"), [(1, 1), (7, 3), (50, 2)])
def test_neither_batches_nor_threads_change_the_alignment(
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    batch: int,
    threads: int,
) -> None:
    """DVC compares bytes, so every machine must give the same ones; the reports show every tension."""
    pairs = permuted(60)[0]
    wanted, reports = aligned(tmp_path, pairs), capfd.readouterr().err
    monkeypatch.setattr(translation_table, "BATCH_WORDS", batch)
    monkeypatch.setattr(word_ids, "BLOCK", batch)
    monkeypatch.setattr(fast_align, "cores", lambda: threads)
    assert aligned(tmp_path, pairs) == wanted
    again = capfd.readouterr().err
    assert again.partition("iteration")[2] == reports.partition("iteration")[2]
    assert reports.count("iteration") == 5
    assert "align: iteration 4 of 5: forward perplexity" in reports
    assert reports.endswith(f"\nalign: iteration 5 of 5: linked {len(wanted)} sentence pairs\n")
    assert {path.suffix for path in tmp_path.iterdir()} == {"", ".records"}  # no temporary folder


def test_empty_sides_have_no_links_and_change_nothing_else(tmp_path: Path) -> None:
    """Line n of the links must belong to pair n, even if pairs are skipped."""
    pairs, _ = permuted(6)
    with_empty: Pairs = [(["lost"], []), *pairs[:3], ([], []), ([], ["verloren"]), *pairs[3:]]
    wanted = aligned(tmp_path, pairs)
    assert aligned(tmp_path, with_empty) == [[], *wanted[:3], [], [], *wanted[3:]]


def test_a_corpus_without_words_has_no_links(tmp_path: Path) -> None:
    """With nothing to count, there must be no division by zero."""
    assert aligned(tmp_path, []) == []
    assert aligned(tmp_path, [([], ["x"]), ([], [])]) == [[], []]


def test_true_links_of_swapped_neighbors_are_found(tmp_path: Path) -> None:
    """Words translate one to one, so only repeated words can be confused; the diagonal errs far more."""
    pairs, truth = permuted(400)
    assert alignment_error_rate(aligned(tmp_path, pairs), truth) < 0.03
    diagonal = [[(i, i) for i in range(len(source))] for source, _ in pairs]
    assert alignment_error_rate(diagonal, truth) > 0.4
    untrained = aligned(tmp_path, pairs, iterations=1)
    assert alignment_error_rate(untrained, truth) > 0.4


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
        {entry.source: entry.target for entry in build_dictionary(corpus, words, pack(links), tmp_path)}
        for links in (ours, theirs)
    )
    assert equal_entries(one, other, tmp_path / "s") >= 0.93


@pytest.mark.parametrize(
    ("what", "available"), [("memory", "available_memory"), ("disk space", "disk_usage")]
)
def test_what_does_not_fit_is_refused_before_it_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str, available: str
) -> None:
    """Otherwise the system kills the process, or a disk is full, hours later."""
    monkeypatch.setattr(fast_align, "available_memory", lambda: 1 << (20 if what == "memory" else 40))
    monkeypatch.setattr(fast_align.shutil, "disk_usage", lambda _: SimpleNamespace(free=100))
    monkeypatch.setattr(Aligner, "iterate", None)
    with pytest.raises(
        OSError, match=rf"needs up to 0.\d+ GiB of {what}; expected as much on .*, found 0.00"
    ):
        aligned(tmp_path, permuted(6)[0])
    assert {path.suffix for path in tmp_path.iterdir()} == {"", ".records"}
