"""Links of an aligned corpus -> dictionary of unknown words (§4.3, T33), and alignment candidates (§5.4)."""

from collections.abc import Iterable
from pathlib import Path
from tempfile import TemporaryFile
from typing import NamedTuple

import numpy as np

from convs2s.base.compiled import compiled
from convs2s.base.parallel import Threads, cores
from convs2s.ids.candidates import Candidates
from convs2s.ids.flat_ids import Offsets
from convs2s.text.alignment.dictionary import Entry
from convs2s.text.alignment.translation_table import count_words
from convs2s.text.alignment.word_ids import Chunk, Corpus, Ids, Links

NEAR_TIE = 0.9
"""Target words with at least this share of the most frequent one's links compete with it."""
HELD_LINKS = 1 << 22
"""Links read from disk at once, 8 bytes each."""


class LinkCounts(NamedTuple):
    """Source word s has the target words targets[offsets[s] : offsets[s + 1]], most frequent first."""

    offsets: Offsets
    targets: Ids
    counts: Ids
    """Links of each of these pairs of words."""
    totals: Offsets
    """Links of each source word, with any target word."""


def build_dictionary(
    corpus: Corpus, words: list[list[str]], links: Iterable[Links], folder: Path
) -> list[Entry]:
    """Return an entry for each source word that has a link, in code point order of source words.

    The entry has the target word that is linked most often. Among words linked about as often, it has the one
    that is rarest in the corpus: punctuation and articles are occasionally linked with everything, and a word
    that needs replacing is rare itself. Remaining ties go to the word linked more often, then to the first in
    code point order.

    Args:
        words: of each side, by id.
        links: of all pairs of the corpus.
        folder: for a temporary file.
    """
    found = count_links(corpus, links, folder)
    frequencies = np.zeros(corpus.target.vocabulary, np.int64)
    count_words(corpus.target.records(), frequencies)
    sources = np.repeat(np.arange(len(found.totals)), np.diff(found.offsets))
    near = found.counts >= NEAR_TIE * found.counts[found.offsets[sources]]
    ranks = np.empty(len(words[1]), np.int64)
    ranks[sorted(range(len(ranks)), key=words[1].__getitem__)] = np.arange(len(ranks))
    columns = np.stack([sources, found.targets, found.counts, found.totals[sources]])[:, near]
    sources, targets, counts, _ = columns
    order = np.lexsort((ranks[targets], -counts, frequencies[targets], sources))
    _, best = np.unique(sources[order], return_index=True)
    rows = columns[:, order[best]].T.tolist()
    return sorted(Entry(words[0][s], words[1][t], count, total) for s, t, count, total in rows)


def build_candidates(corpus: Corpus, links: Iterable[Links], most: int, folder: Path) -> Candidates:
    """Return up to `most` candidates of each source token; ties are in order of ids.

    Args:
        links: of all pairs of the corpus.
        folder: for a temporary file.
    """
    found = count_links(corpus, links, folder)
    linked = len(np.trim_zeros(found.totals, "b"))
    return Candidates(found.offsets[: linked + 1], found.targets).top(most)


def count_links(corpus: Corpus, links: Iterable[Links], folder: Path) -> LinkCounts:
    """Count the links of each pair of words; ties are in order of ids."""
    totals = np.zeros(corpus.source.vocabulary, np.int64)
    with TemporaryFile(dir=folder) as stream:
        for chunk, found in zip(corpus.chunks(), links, strict=True):
            words = np.empty_like(found.positions)
            look_up(chunk, found, words)
            totals += np.bincount(words[:, 0], minlength=len(totals))
            stream.write(words.data)
        places = np.insert(np.cumsum(totals), 0, 0)
        targets = np.empty(places[-1], np.int32)
        following = places[:-1].copy()
        stream.seek(0)
        while len(words := np.fromfile(stream, np.int32, 2 * HELD_LINKS)):
            group(words, following, targets)
    counts, sizes = np.empty_like(targets), np.zeros_like(totals)
    with Threads(cores()) as threads:
        threads.share(places, count_rows, places, corpus.target.vocabulary, targets, counts, sizes)
    for array in (targets, counts):
        pack(places, sizes, array)
    offsets = np.insert(np.cumsum(sizes), 0, 0)
    return LinkCounts(offsets, targets[: offsets[-1]].copy(), counts[: offsets[-1]].copy(), totals)


@compiled
def look_up(chunk: Chunk, links: Links, words: Ids) -> None:
    """Write the source and the target word of each link of a chunk."""
    row = 0
    for k in range(len(links.counts)):
        for _ in range(links.counts[k]):
            words[row, 0] = chunk.source[chunk.source_offsets[k] + links.positions[row, 0]]
            words[row, 1] = chunk.target[chunk.target_offsets[k] + links.positions[row, 1]]
            row += 1


@compiled
def group(words: Ids, places: Offsets, targets: Ids) -> None:
    """Write the target word of each link to the place of its source word, which then advances."""
    for k in range(0, len(words), 2):
        targets[places[words[k]]] = words[k + 1]
        places[words[k]] += 1


@compiled
def count_rows(
    first: int, last: int, places: Offsets, vocabulary: int, targets: Ids, counts: Ids, sizes: Offsets
) -> None:
    """Replace the targets of each source word [first, last) by distinct ones, most frequent first."""
    frequency = np.zeros(vocabulary, np.int64)
    for word in range(first, last):
        row = targets[places[word] : places[word + 1]]
        size = 0
        for target in row:
            if frequency[target] == 0:
                row[size] = target  # earlier elements have been counted
                size += 1
            frequency[target] += 1
        keys = np.empty(size, np.int64)
        for k in range(size):
            keys[k] = (-frequency[row[k]] << 32) + row[k]
            frequency[row[k]] = 0
        keys.sort()
        for k in range(size):
            row[k] = keys[k] & 0xFFFFFFFF
            counts[places[word] + k] = -(keys[k] >> 32)
        sizes[word] = size


@compiled
def pack(places: Offsets, sizes: Offsets, values: Ids) -> None:
    """Move the first sizes[w] values from each places[w] on together."""
    end = 0
    for word in range(len(sizes)):
        for place in range(places[word], places[word] + sizes[word]):
            values[end] = values[place]
            end += 1
