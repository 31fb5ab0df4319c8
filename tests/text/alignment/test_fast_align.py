"""The built-in aligner against a plain reference, true alignments and systran-align."""

import gzip
import math
import random
import re
from collections import defaultdict
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

import numpy as np
import pytest

from benchmarks._aligners import systran
from benchmarks.align import alignment_error_rate, equal_entries
from convs2s.text.alignment import fast_align, translation_table
from convs2s.text.alignment.fast_align import Aligner, Links, align
from convs2s.text.alignment.link_counting import build_dictionary
from convs2s.text.alignment.symmetrization import symmetrize
from convs2s.text.alignment.translation_table import build_table, digamma, find
from convs2s.text.alignment.word_ids import number_words, numbering
from convs2s.text.corpus.parallel import Threads
from tests.text.alignment.test_diagonal_prior import sum_distances

Pairs = list[tuple[list[str], list[str]]]


def write(folder: Path, pairs: Pairs) -> tuple[Path, Path]:
    """Write a corpus; return its two files."""
    for side, name in enumerate(("source", "target")):
        lines = "".join(" ".join(pair[side]) + "\n" for pair in pairs)
        (folder / name).write_text(lines, encoding="utf-8", newline="\n")
    return folder / "source", folder / "target"


def aligned(folder: Path, pairs: Pairs, iterations: int = 5) -> list[Links]:
    """Write and align a corpus."""
    return list(align(*write(folder, pairs), iterations, folder))


def permuted(count: int) -> tuple[Pairs, list[Links]]:
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


@pytest.mark.parametrize("iterations", [1, 2, 4])
def test_tables_tensions_and_links_are_those_of_a_plain_reference(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, iterations: int
) -> None:
    """Hash tables, chunks, float32 storage and closed forms must not affect the result."""
    monkeypatch.setattr(fast_align, "CHUNK_CELLS", 20)
    pairs = [pair for pair in permuted(30)[0] if len({*pair[0]}) == len(pair[0])]  # a repeated word may tie
    forward, backward = Reference(pairs), Reference([(t, s) for s, t in pairs])
    files = write(tmp_path, pairs)
    with Threads(2) as threads:
        corpus = number_words(*files, tmp_path)
        aligner = Aligner(corpus, build_table(corpus, threads), threads, exact=False)
        for iteration in range(iterations):
            for reference in (forward, backward):
                reference.iterate(fit_tension=iteration > 0)
            aligner.iterate(fit_tension=iteration > 0)
        found = [links for chunk in corpus.chunks(20) for links in aligner.link(chunk)]
    assert aligner.forward.tension == pytest.approx(forward.tension, rel=1e-5)
    assert aligner.backward.tension == pytest.approx(backward.tension, rel=1e-5)
    source_ids, target_ids = numbering(), numbering()
    for source, target in pairs:
        for s in source:
            for t in target:
                slot = find(aligner.table, source_ids[s], target_ids[t])
                both = [direction.probabilities[slot] for direction in (aligner.forward, aligner.backward)]
                assert both == pytest.approx([forward.t[s][t], backward.t[t][s]], rel=1e-4, abs=1e-30)
    for links, one, other in zip(found, forward.links(), backward.links(), strict=True):
        rows = np.zeros((len(one) + len(other), 2), np.int32)
        count = symmetrize(np.array(one, np.int32), np.array(other, np.int32), rows)
        assert links == [tuple(link) for link in rows[:count].tolist()]


@pytest.mark.parametrize(("chunk_cells", "threads"), [(1, 1), (7, 3), (50, 2)])
def test_neither_chunks_nor_threads_change_the_alignment(
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    chunk_cells: int,
    threads: int,
) -> None:
    """DVC compares bytes, so every machine must give the same ones; the reports show every tension."""
    pairs = permuted(60)[0]
    wanted, reports = aligned(tmp_path, pairs), capfd.readouterr().err
    monkeypatch.setattr(fast_align, "CHUNK_CELLS", chunk_cells)
    monkeypatch.setattr(translation_table, "BATCH_WORDS", chunk_cells)
    monkeypatch.setattr(fast_align, "cores", lambda: threads)
    assert aligned(tmp_path, pairs) == wanted
    assert capfd.readouterr().err == reports
    assert reports.count("\n") == 5
    assert "align: iteration 4 of 5: forward perplexity" in reports
    assert reports.endswith(f"\nalign: iteration 5 of 5: linked {len(wanted)} sentence pairs\n")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["source", "target"]


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
    theirs = list(systran(*write(tmp_path, pairs), 5, tmp_path))
    assert 1.0 - alignment_error_rate(ours, theirs) >= 0.95
    text = [(" ".join(source), " ".join(target)) for source, target in pairs]
    one, other = (
        {entry.source: entry.target for entry in build_dictionary(text, links)} for links in (ours, theirs)
    )
    assert equal_entries(one, other, tmp_path / "source") >= 0.93
