"""Word alignment with fast_align's model, in both directions (Dyer et al., 2013).

IBM model 2 with a diagonal prior whose tension is fitted, a null word and variational Bayes: each
generated word is linked with one given word or with none. "Forward" generates target words from given
source words, "backward" the reverse; grow-diag-final-and merges the two alignments (T33). Links are those of
the authors' program, whose error in fitting the tension is repeated: see `diagonal_prior`.

What grows with the corpus is in mapped files, which the system keeps in memory as long as there is room.
Threads share the generated words: the occurrences of each are independent of other words, so results are
byte-identical for any number of threads.
"""

import itertools
import os
import sys
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from convs2s.base.files import temporary_folder
from convs2s.base.messages import inflect
from convs2s.base.parallel import cores
from convs2s.ids.encoded import FlatIds, Offsets
from convs2s.text.alignment import posteriors, word_ids
from convs2s.text.alignment.diagonal_prior import FIRST_TENSION, optimize_tension
from convs2s.text.alignment.symmetrization import symmetrize_pairs
from convs2s.text.alignment.word_ids import Corpus, Links, pack_links

RANGES = 4  # per thread: their work differs a little


def align(corpus: Corpus, iterations: int, folder: Path) -> Iterator[Links]:
    """Yield the links of all sentence pairs.

    A pair with an empty side has no links. Each iteration prints a line to stderr.

    Args:
        iterations: passes over the corpus; as in fast_align, the last one only links.
        folder: where a temporary folder is created: 4 bytes for each distinct pair of words and direction,
            and 24 for each word of the text.
    """
    pairs = len(corpus.source)
    if not len(corpus.source.ids):
        yield from pack_links([] for _ in range(pairs))
        return
    with temporary_folder(folder) as work, ThreadPoolExecutor(cores()) as threads:
        forward = Direction(corpus.source, corpus.target, Path(work) / "forward", threads)
        backward = Direction(corpus.target, corpus.source, Path(work) / "backward", threads)
        for iteration in range(1, iterations):
            forward_report = forward.iterate(fit_tension=iteration > 1)
            backward_report = backward.iterate(fit_tension=iteration > 1)
            print(
                f"align: iteration {iteration} of {iterations}: forward {forward_report}; "
                f"backward {backward_report}",
                file=sys.stderr,
                flush=True,
            )
        source_of = forward.choose()
        target_of = backward.choose()
        for first in range(0, pairs, word_ids.BLOCK):
            ends = slice(first, first + word_ids.BLOCK + 1)
            sources, targets = corpus.source.offsets[ends], corpus.target.offsets[ends]
            begins = sources + targets - sources[0] - targets[0]
            rows = np.empty((begins[-1], 2), np.int32)  # room for the most links that a pair can have
            counts = np.empty(len(begins) - 1, np.int64)
            run_in_ranges(
                threads, begins, symmetrize_pairs, sources, targets, source_of, target_of, rows, counts
            )
            room = np.diff(begins)
            row_of_pair = np.arange(len(rows)) - np.repeat(begins[:-1], room)
            is_used = row_of_pair < np.repeat(counts, room)
            yield Links(counts, rows[is_used])
        print(f"align: linked {inflect(pairs, 'sentence pair')}", file=sys.stderr, flush=True)


def run_in_ranges(
    threads: ThreadPoolExecutor, offsets: Offsets, function: Callable[..., Any], *arguments: Any
) -> Any:
    """Call function(first, last, *arguments) for ranges that cover all items; return the sum of its results.

    Each is added once those before it are, so that hardly more are in memory than there are threads.

    Args:
        offsets: where each item's work begins, then the end; ranges have about equal amounts of work.
        function: compiled, so that threads run in parallel.
    """
    shares = np.linspace(0, offsets[-1], RANGES * cores() + 1)[1:-1]
    bounds = itertools.pairwise([0, *np.searchsorted(offsets, shares).tolist(), len(offsets) - 1])
    tasks = deque(threads.submit(function, first, last, *arguments) for first, last in bounds)
    results = (tasks.popleft().result() for _ in range(len(tasks)))
    return sum(result for result in results if result is not None)


class Direction:
    """One direction's model; it begins with equal probabilities.

    Args:
        prefix: of the files for what grows with the corpus.
    """

    def __init__(self, given: FlatIds, generated: FlatIds, prefix: Path, threads: ThreadPoolExecutor) -> None:
        self.prefix = prefix
        self.threads = threads
        self.words = len(generated.ids)
        self.lengths = count_lengths(given, generated)
        frequencies = np.zeros(int(generated.ids.max()) + 1, np.int64)
        posteriors.add_frequencies(generated.ids, frequencies)
        places = np.insert(np.cumsum(frequencies), 0, 0)
        occurrences = self._allocate("occurrences", np.int64, self.words)
        posteriors.list_occurrences(generated.ids, generated.offsets, places.copy(), occurrences)
        table = posteriors.Table(
            places=places,
            occurrences=occurrences,
            starts=places[:0],  # these two follow, once the values are counted
            values=np.empty(0, np.float32),
            given=given.ids,
            given_offsets=given.offsets,
            generated_offsets=generated.offsets,
        )
        sizes = np.zeros_like(frequencies)
        vocabulary = int(given.ids.max()) + 1
        run_in_ranges(threads, places, posteriors.count_values, table, vocabulary, sizes)
        starts = np.insert(np.cumsum(sizes), 0, 0)
        values = self._allocate("values", np.float32, starts[-1])
        values[:] = 1.0
        self.table = table._replace(starts=starts, values=values)
        self.occurs = frequencies > 0
        uniform = 1.0 / np.count_nonzero(self.occurs)
        self.scales = np.full(vocabulary, uniform)
        self.nulls = np.full(len(frequencies), uniform, np.float32)
        self.tension = FIRST_TENSION

    def _allocate(self, name: str, dtype: DTypeLike, length: int) -> NDArray[Any]:
        """Return an array in a new file; its space is reserved, for writing to a full disk would crash."""
        path = self.prefix.with_suffix(f".{name}")
        size = length * np.dtype(dtype).itemsize
        with path.open("xb") as stream:
            try:
                os.posix_fallocate(stream.fileno(), 0, size)
            except OSError as error:
                needed = f"{size / (1 << 30):.2f} GiB more of disk space"
                advice = "Free some, use another machine, or set align.backend: none."
                raise OSError(f"{path}: alignment needs {needed} ({error}). {advice}") from error
        return np.asarray(np.memmap(path, dtype, "r+", shape=(length,)))

    def model(self) -> posteriors.LinkModel:
        """Return what posteriors are computed from, besides the table."""
        return posteriors.make_model(self.scales, self.nulls, np.unique(self.lengths[:, :2]), self.tension)

    def iterate(self, fit_tension: bool) -> str:
        """Run one iteration of expectation maximization; return a one-line report."""
        nulls, distances = np.zeros((2, len(self.nulls)))
        totals = run_in_ranges(
            self.threads, self.table.places,
            posteriors.expect_words, self.table, self.model(), nulls, distances,
        )  # fmt: skip
        totals = totals / posteriors.UNIT
        if fit_tension:
            distance = float(distances.sum()) / self.words
            self.tension = optimize_tension(self.tension, distance, self.lengths, self.words)
        given = totals > 0
        self.scales[given] = np.exp(-posteriors.digammas(totals[given]))
        counts = nulls[self.occurs] + posteriors.ALPHA
        logarithms = posteriors.digammas(counts) - posteriors.digammas(counts.sum(keepdims=True))
        self.nulls[self.occurs] = np.maximum(np.exp(logarithms), posteriors.FLOOR)
        return f"tension {self.tension:.3f}"

    def choose(self) -> NDArray[np.int32]:
        """Return the given position that each generated word is linked with, or -1, in corpus order."""
        chosen = self._allocate("chosen", np.int32, self.words)
        run_in_ranges(
            self.threads, self.table.places, posteriors.choose_links, self.table, self.model(), chosen
        )
        return chosen


def count_lengths(given: FlatIds, generated: FlatIds) -> Offsets:
    """Return rows of given length, generated length, number of such pairs, without empty pairs."""
    both = (given.lengths.astype(np.int64) << 32) | generated.lengths
    lengths, pairs = np.unique(both[both > 0], return_counts=True)
    return np.stack([lengths >> 32, lengths & 0xFFFFFFFF, pairs], axis=1)
