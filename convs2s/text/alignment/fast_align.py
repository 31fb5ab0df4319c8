"""Word alignment with fast_align's model, in both directions at once (Dyer et al., 2013).

IBM model 2 with a diagonal prior whose tension is fitted, a null word and variational Bayes: each
generated word is linked with one given word or with none. "Forward" generates target words from given
source words, "backward" the reverse; grow-diag-final-and merges the two alignments (T33). With `exact`,
links equal those of the program fast_align, which has a bug: see `diagonal_prior`.

The corpus is read from disk in chunks. Results are byte-identical for any chunk size and any number of
threads: threads share the work on the posteriors, which are independent, and one thread per direction sums
them in the order of the corpus.
"""

import math
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from convs2s.messages import inflect
from convs2s.text.alignment.diagonal_prior import FIRST_TENSION, optimize_tension
from convs2s.text.alignment.posteriors import (
    Model,
    Posteriors,
    accumulate,
    choose_pairs,
    empty_posteriors,
    expect_pairs,
)
from convs2s.text.alignment.symmetrization import symmetrize_pairs
from convs2s.text.alignment.translation_table import Table, build_table, look_up, normalize
from convs2s.text.alignment.word_ids import Chunk, Corpus, Ids, Side, number_words
from convs2s.text.corpus.files import temporary_folder
from convs2s.text.corpus.flat_ids import Offsets
from convs2s.text.corpus.parallel import Threads, cores

Links = list[tuple[int, int]]
"""Sorted links of a sentence pair, each (source position, target position) from 0."""

CHUNK_CELLS = 1 << 18
"""Word pairs in memory at once, 16 bytes each; only a longer sentence pair may exceed this."""


def align(
    source: Path, target: Path, iterations: int, folder: Path, *, exact: bool = False
) -> Iterator[Links]:
    """Yield the links of each sentence pair of two files of whitespace-separated words.

    A pair with an empty side has no links. Each iteration prints a line to stderr.

    Args:
        source: line i translates line i of `target`.
        iterations: passes over the corpus; as in fast_align, the last one only links.
        folder: where a temporary folder is created, with 4 bytes per word and 16 per sentence pair.
        exact: fit the tension as the program does.

    Raises:
        ValueError, FileNotFoundError: as `read_pairs`.
    """
    with temporary_folder(folder) as work, Threads(cores()) as threads:
        corpus = number_words(source, target, Path(work))
        aligner = Aligner(corpus, build_table(corpus, threads), threads, exact)
        for iteration in range(1, iterations if len(corpus.source.ids) else 1):
            log(iteration, iterations, aligner.iterate(fit_tension=iteration > 1))
        for chunk in corpus.chunks(CHUNK_CELLS):
            yield from aligner.link(chunk)
        log(iterations, iterations, f"linked {inflect(len(corpus.source), 'sentence pair')}")


def log(iteration: int, iterations: int, report: str) -> None:
    """Print what an iteration did."""
    print(f"align: iteration {iteration} of {iterations}: {report}", file=sys.stderr, flush=True)


class Aligner:
    """Both directions' models of a corpus."""

    def __init__(self, corpus: Corpus, table: Table, threads: Threads, exact: bool) -> None:
        self.corpus, self.table, self.threads = corpus, table, threads
        self.lengths = corpus.length_counts()
        self.forward = Direction(table, corpus.source, corpus.target, given_source=True, exact=exact)
        self.backward = Direction(table, corpus.target, corpus.source, given_source=False, exact=exact)

    def iterate(self, fit_tension: bool) -> str:
        """Run one iteration of expectation maximization; return a one-line report."""
        directions = self.forward, self.backward
        for chunk in self.corpus.chunks(CHUNK_CELLS):
            slots, *both = self.expect(chunk, chunk.cells())
            words = chunk.target, chunk.source
            list(self.threads.map(Direction.add, directions, both, words, [slots] * 2))
        orders = self.lengths, self.lengths[:, [1, 0, 2]]
        forward, backward = self.threads.map(Direction.update, directions, orders, [fit_tension] * 2)
        return f"forward {forward}; backward {backward}"

    def expect(self, chunk: Chunk, cells: Offsets) -> tuple[Offsets, Posteriors, Posteriors]:
        """Return the slots of a chunk's cells, and the forward and backward posteriors."""
        slots = np.empty(cells[-1], np.int64)
        both = empty_posteriors(cells, len(chunk.target)), empty_posteriors(cells, len(chunk.source))
        models = self.forward.model(), self.backward.model()
        self.threads.share(cells, look_up, chunk, cells, self.table, slots)
        self.threads.share(cells, expect_pairs, chunk, cells, slots, *models, *both)
        return slots, *both

    def link(self, chunk: Chunk) -> Iterator[Links]:
        """Yield the links of each pair of a chunk."""
        cells = chunk.cells()
        _, *both = self.expect(chunk, cells)
        source_of, target_of = np.empty_like(chunk.target), np.empty_like(chunk.source)
        self.threads.share(cells, choose_pairs, chunk, cells, *both, source_of, target_of)
        rows = np.empty((len(chunk.source) + len(chunk.target), 2), np.int32)
        counts = np.empty(len(cells) - 1, np.int64)
        offsets = chunk.source_offsets, chunk.target_offsets
        self.threads.share(cells, symmetrize_pairs, *offsets, source_of, target_of, rows, counts)
        begins = offsets[0] + offsets[1]
        for begin, count in zip(begins[:-1].tolist(), counts.tolist(), strict=True):
            yield [(i, j) for i, j in rows[begin : begin + count].tolist()]


class Direction:
    """One direction's model, and the expected counts for the next model."""

    def __init__(self, table: Table, given: Side, generated: Side, given_source: bool, exact: bool) -> None:
        self.table = table
        self.exact = exact
        self.given_source = given_source
        self.given_vocabulary = given.vocabulary
        self.generated_words = len(generated.ids)
        self.tension = FIRST_TENSION
        uniform = 1.0 / max(generated.vocabulary, 1)
        self.probabilities = np.full(len(table.targets), uniform, np.float32)
        self.null_probabilities = np.full(generated.vocabulary, uniform, np.float32)
        self.counts = np.zeros(len(table.targets))
        self.null_counts = np.zeros(generated.vocabulary)
        self.sums = np.zeros(2)  # of log likelihood, and of posterior distance from the diagonal

    def model(self) -> Model:
        """Return the parameters from which posteriors are computed."""
        return Model(self.probabilities, self.null_probabilities, self.tension)

    def add(self, posteriors: Posteriors, generated: Ids, slots: Offsets) -> None:
        """Add a chunk's posteriors to the expected counts; `generated` are the generated words."""
        accumulate(slots, generated, posteriors, self.counts, self.null_counts, self.sums)

    def update(self, lengths: Offsets, fit_tension: bool) -> str:
        """Turn the counts into probabilities, and reset them to 0; return a one-line report.

        Args:
            lengths: rows of given length, generated length, number of pairs.
            fit_tension: whether to change the tension as well.
        """
        log_likelihood, distance = (self.sums / self.generated_words).tolist()
        if fit_tension:
            self.tension = optimize_tension(self.tension, distance, lengths, self.generated_words, self.exact)
        normalize(self.table, self.given_source, self.given_vocabulary, self.counts, self.probabilities)
        # The null word is an additional given word, whose row holds all generated words in order.
        words = len(self.null_counts)
        row = Table(np.array([0, words]), np.arange(words, dtype=np.int32))
        normalize(row, True, 1, self.null_counts, self.null_probabilities)
        self.sums[:] = 0.0
        return f"perplexity {math.exp(-log_likelihood):.2f}, tension {self.tension:.3f}"
