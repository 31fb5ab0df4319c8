"""Word alignment with fast_align's model, in both directions (Dyer et al., 2013).

IBM model 2 with a diagonal prior whose tension is fitted, a null word and variational Bayes: each
generated word is linked with one given word or with none. "Forward" generates target words from given
source words, "backward" the reverse; grow-diag-final-and merges the two alignments (T33). With `exact`,
links equal those of the program fast_align, which has a bug: see `diagonal_prior`.

What grows with the corpus is on disk. Threads share the generated words: the occurrences of each are
independent of other words, so results are byte-identical for any number of threads.
"""

import math
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from convs2s.base.files import temporary_folder
from convs2s.base.messages import inflect
from convs2s.base.parallel import Threads, available_memory, cores
from convs2s.ids.flat_ids import Offsets
from convs2s.text.alignment.diagonal_prior import FIRST_TENSION, optimize_tension
from convs2s.text.alignment.posteriors import (
    Model,
    Sums,
    choose_rows,
    expect_rows,
    make_positions,
    normalize,
    normalize_nulls,
)
from convs2s.text.alignment.symmetrization import symmetrize_pairs
from convs2s.text.alignment.translation_table import BATCH_WORDS, Rows, Table, write_at
from convs2s.text.alignment.word_ids import Chunk, Corpus, Ids, Links, map_array, take_next

GIB = 1 << 30


def align(corpus: Corpus, iterations: int, folder: Path, *, exact: bool = False) -> Iterator[Links]:
    """Yield the links of all sentence pairs.

    A pair with an empty side has no links. Each iteration prints a line to stderr.

    Args:
        iterations: passes over the corpus; as in fast_align, the last one only links.
        folder: where a temporary folder is created.
        exact: fit the tension as the program does.

    Raises:
        OSError: if memory or disk space do not suffice.
    """
    if not corpus.source.words:
        yield from (
            Links(np.zeros(len(chunk.source_offsets) - 1, np.int64), np.zeros((0, 2), np.int32))
            for chunk in corpus.chunks()
        )
        return
    with temporary_folder(folder) as work, Threads(cores()) as threads:
        ask_for("memory", memory_needed(corpus, threads.count), available_memory(), "this machine")
        aligner = Aligner(corpus, Path(work), threads, exact)
        ask_for("disk space", aligner.disk_needed(), shutil.disk_usage(work).free, str(folder))
        for direction in aligner.directions:
            direction.table.write_values()
        for iteration in range(1, iterations):
            log(iteration, iterations, aligner.iterate(fit_tension=iteration > 1))
        yield from aligner.link()
        log(iterations, iterations, f"linked {inflect(corpus.pairs, 'sentence pair')}")


def memory_needed(corpus: Corpus, threads: int) -> int:
    """Return the bytes of memory, including mapped files, that aligning takes at most."""
    words = corpus.source.words + corpus.target.words
    records = 4 * (words + 4 * corpus.pairs)
    rows = 40 * threads * max(corpus.source.vocabulary, corpus.target.vocabulary)
    return records + rows + 100 * min(BATCH_WORDS, words // 4) + GIB // 4


def ask_for(what: str, needed: int, available: int, place: str) -> None:
    """Print how much of a resource is needed.

    Raises:
        OSError: if there is less.
    """
    print(f"align: needs up to {needed / GIB:.2f} GiB of {what}", file=sys.stderr, flush=True)
    if needed > available:
        raise OSError(
            f"alignment needs up to {needed / GIB:.2f} GiB of {what}; expected as much on {place}, found "
            f"{available / GIB:.2f}. Free some, use another machine, or set align.backend: none."
        )


def log(iteration: int, iterations: int, report: str) -> None:
    """Print what an iteration did."""
    print(f"align: iteration {iteration} of {iterations}: {report}", file=sys.stderr, flush=True)


class Aligner:
    """Both directions' models of a corpus."""

    def __init__(self, corpus: Corpus, folder: Path, threads: Threads, exact: bool) -> None:
        self.corpus, self.threads = corpus, threads
        lengths = count_lengths(corpus)
        source, target = corpus.source, corpus.target
        self.forward = Direction(Table(folder / "forward", source, target, threads), lengths, exact)
        lengths = lengths[:, [1, 0, 2]]
        self.backward = Direction(Table(folder / "backward", target, source, threads), lengths, exact)
        self.directions = self.forward, self.backward

    def disk_needed(self) -> int:
        """Return the bytes that values and links will take."""
        values = sum(int(direction.table.starts[-1]) for direction in self.directions)
        return 4 * values + 12 * (self.corpus.source.words + self.corpus.target.words)

    def iterate(self, fit_tension: bool) -> str:
        """Run one iteration of expectation maximization; return a one-line report."""
        forward, backward = (direction.iterate(fit_tension) for direction in self.directions)
        return f"forward {forward}; backward {backward}"

    def link(self) -> Iterator[Links]:
        """Yield the links of all pairs."""
        chosen = [direction.choose() for direction in self.directions]
        places = [direction.table.places[:-1].copy() for direction in self.directions]
        for chunk in self.corpus.chunks():
            linked = self.threads.map(take_next, chosen, places, (chunk.target, chunk.source))
            yield self.symmetrize(chunk, *linked)

    def symmetrize(self, chunk: Chunk, source_of: Ids, target_of: Ids) -> Links:
        """Return the links of a chunk, given the position that each target and each source word chose."""
        rows = np.empty((len(chunk.source) + len(chunk.target), 2), np.int32)
        counts = np.empty(len(chunk.source_offsets) - 1, np.int64)
        begins = chunk.source_offsets + chunk.target_offsets
        offsets = chunk.source_offsets, chunk.target_offsets
        self.threads.share(begins, symmetrize_pairs, *offsets, source_of, target_of, rows, counts)
        used = np.arange(len(rows)) - np.repeat(begins[:-1], np.diff(begins)) < np.repeat(
            counts, np.diff(begins)
        )
        return Links(counts, rows[used])


class Direction:
    """One direction's model."""

    def __init__(self, table: Table, lengths: Offsets, exact: bool) -> None:
        """Begin with equal probabilities.

        Args:
            lengths: rows of given length, generated length, number of pairs.
            exact: as for `align`.
        """
        self.table, self.lengths, self.exact = table, lengths, exact
        self.tension = FIRST_TENSION
        self.occurs = np.diff(table.places) > 0
        uniform = 1.0 / np.count_nonzero(self.occurs)
        self.scales = np.full(table.given.vocabulary, uniform)
        self.nulls = np.full(table.generated.vocabulary, uniform, np.float32)

    def model(self) -> Model:
        """Return what posteriors are computed from, besides the table."""
        return Model(self.scales, self.nulls, make_positions(np.unique(self.lengths[:, :2]), self.tension))

    def iterate(self, fit_tension: bool) -> str:
        """Run one iteration of expectation maximization; return a one-line report.

        Args:
            fit_tension: whether to change the tension as well.
        """
        given, longest, model = self.table.given.records(), self.table.given.longest, self.model()
        sums = Sums(*np.zeros((3, self.table.generated.vocabulary)))
        totals = np.zeros_like(self.scales, np.int64)
        for found in self.table.map(lambda rows: expect_rows(rows, given, longest, model, sums)):
            totals += found
        words = self.table.generated.words
        if fit_tension:
            distance = float(sums.distances.sum()) / words
            self.tension = optimize_tension(self.tension, distance, self.lengths, words, self.exact)
        normalize(totals, self.scales)
        normalize_nulls(sums.nulls, self.occurs, self.nulls)
        perplexity = math.exp(-float(sums.log_likelihoods.sum()) / words)
        return f"perplexity {perplexity:.2f}, tension {self.tension:.3f}"

    def choose(self) -> Ids:
        """Return the given position that each generated word is linked with, or -1, in rows of the table."""
        given, longest, model = self.table.given.records(), self.table.given.longest, self.model()
        dtype = np.int16 if longest < 1 << 15 else np.int32
        path = self.table.values.with_name("chosen")
        path.touch()

        def choose(rows: Rows) -> None:
            chosen = np.empty(len(rows.occurrences), dtype)
            choose_rows(rows, given, longest, model, chosen)
            write_at(path, int(self.table.places[rows.first]), chosen)

        list(self.table.map(choose))
        return map_array(path, dtype)


def count_lengths(corpus: Corpus) -> Offsets:
    """Return rows of source length, target length, number of such pairs, without empty pairs."""
    both = [
        (np.diff(chunk.source_offsets) << 32) | np.diff(chunk.target_offsets) for chunk in corpus.chunks()
    ]
    lengths, pairs = np.unique(np.concatenate(both), return_counts=True)
    found = np.stack([lengths >> 32, lengths & 0xFFFFFFFF, pairs], axis=1)
    return found[lengths > 0]
