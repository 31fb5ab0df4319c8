"""Links of an aligned corpus -> dictionary of unknown words (§4.3, T33), and alignment candidates (§5.4)."""

from collections.abc import Iterable, Iterator

import numpy as np

from convs2s.ids.candidates import Candidates
from convs2s.ids.encoded import Offsets
from convs2s.text.alignment.dictionary import Entry
from convs2s.text.alignment.posteriors import add_frequencies
from convs2s.text.alignment.word_ids import Corpus, Links

NEAR_TIE = 0.9
"""Target words with at least this share of the most frequent one's links compete with it."""
HELD_LINKS = 1 << 22
"""Links that are counted at once, at least."""


def build_dictionary(corpus: Corpus, words: list[list[str]], links: Iterable[Links]) -> Iterator[Entry]:
    """Yield an entry for each source word that has a link, in code point order of source words.

    The entry has the target word that is linked most often. Among words linked about as often, it has the one
    that is rarest in the corpus: punctuation and articles are occasionally linked with everything, and a word
    that needs replacing is rare itself. Remaining ties go to the word linked more often, then to the first in
    code point order.

    Args:
        words: of each side, by id.
    """
    sources, targets, counts = count_links(corpus, links)
    totals = np.bincount(sources, counts, len(words[0])).astype(np.int64)
    most = np.zeros_like(totals)
    np.maximum.at(most, sources, counts)
    near = counts >= NEAR_TIE * most[sources]
    sources, targets, counts = sources[near], targets[near], counts[near]
    frequencies = np.zeros(len(words[1]), np.int64)
    add_frequencies(corpus.target.ids, frequencies)
    source_ranks, target_ranks = map(code_point_ranks, words)
    order = np.lexsort((target_ranks[targets], -counts, frequencies[targets], source_ranks[sources]))
    is_best = np.diff(sources[order], prepend=-1) != 0
    for best in order[is_best]:
        source = words[0][sources[best]]
        yield Entry(source, words[1][targets[best]], int(counts[best]), int(totals[sources[best]]))


def code_point_ranks(words: list[str]) -> Offsets:
    """Return each word's place in code point order."""
    return np.argsort(sorted(range(len(words)), key=words.__getitem__))


def build_candidates(corpus: Corpus, links: Iterable[Links], most: int) -> Candidates:
    """Return up to `most` candidates of each source token; ties are in order of ids."""
    sources, targets, _ = count_links(corpus, links)
    offsets = np.insert(np.cumsum(np.bincount(sources)), 0, 0)
    return Candidates(offsets, targets.astype(np.int32)).top(most)


def count_links(corpus: Corpus, links: Iterable[Links]) -> tuple[Offsets, Offsets, Offsets]:
    """Return the source and target of each linked pair of words, and its number of links.

    Rows are in order of source words, each with its most frequent target first; ties are in order of ids.
    """
    pairs, counts = np.zeros((2, 0), np.int64)  # a pair of words is a number: source << 32 | target
    waiting: list[Offsets] = []
    for (source, target), block in zip(corpus.blocks(), links, strict=True):
        sources = np.repeat(source.offsets[:-1], block.counts) + block.positions[:, 0]
        targets = np.repeat(target.offsets[:-1], block.counts) + block.positions[:, 1]
        waiting.append((source.ids[sources].astype(np.int64) << 32) | target.ids[targets])
        if sum(map(len, waiting)) >= max(HELD_LINKS, len(pairs)):
            pairs, counts = add_links(pairs, counts, waiting)
            waiting = []
    pairs, counts = add_links(pairs, counts, waiting)
    sources, targets = pairs >> 32, pairs & 0xFFFFFFFF
    order = np.lexsort((targets, -counts, sources))
    return sources[order], targets[order], counts[order]


def add_links(pairs: Offsets, counts: Offsets, waiting: list[Offsets]) -> tuple[Offsets, Offsets]:
    """Return the distinct pairs of words, and how often each occurs, those that wait included."""
    more, more_counts = np.unique(np.concatenate([pairs[:0], *waiting]), return_counts=True)
    merged, places = np.unique(np.concatenate([pairs, more]), return_inverse=True)
    sums = np.bincount(places, np.concatenate([counts, more_counts]), len(merged))
    return merged, sums.astype(np.int64)
