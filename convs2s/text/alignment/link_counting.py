"""Links of an aligned corpus -> dictionary of unknown words (§4.3, T33), and alignment candidates (§5.4)."""

from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from convs2s.text.alignment.candidates import Candidates
from convs2s.text.alignment.dictionary import Entry
from convs2s.text.alignment.word_ids import numbering
from convs2s.text.corpus.flat_ids import FlatIds

NEAR_TIE = 0.9
"""Target words with at least this share of the most frequent one's links compete with it."""
HELD_LINKS = 1 << 22
"""Links buffered before they are counted, 8 bytes each."""


def build_dictionary(
    pairs: Iterable[tuple[str, str]], links: Iterable[Sequence[tuple[int, int]]]
) -> list[Entry]:
    """Return an entry for each source word that has a link, in code point order of source words.

    The entry has the target word that is linked most often. Among words linked about as often, it has the one
    that is rarest in the corpus: punctuation and articles are occasionally linked with everything, and a word
    that needs replacing is rare itself. Remaining ties go to the word linked more often, then to the first in
    code point order.

    Args:
        pairs: sentence pairs of whitespace-separated words.
        links: for each pair, its (source, target) positions from 0.
    """
    source_numbers, target_numbers = numbering(), numbering()
    counts: Counter[tuple[int, int]] = Counter()
    occurrences: Counter[int] = Counter()
    for (source, target), pair_links in zip(pairs, links, strict=True):
        left = [source_numbers[word] for word in source.split()]
        right = [target_numbers[word] for word in target.split()]
        occurrences.update(right)
        counts.update([(left[i], right[j]) for i, j in pair_links])
    sources, targets = list(source_numbers), list(target_numbers)
    totals: Counter[int] = Counter()
    most: dict[int, int] = {}
    for (s, _), count in counts.items():
        totals[s] += count
        most[s] = max(most.get(s, 0), count)
    best: dict[int, tuple[int, int, str]] = {}
    for (s, t), count in counts.items():
        if count >= NEAR_TIE * most[s]:
            candidate = (occurrences[t], -count, targets[t])
            best[s] = min(best.get(s, candidate), candidate)
    entries = (Entry(sources[s], word, -count, totals[s]) for s, (_, count, word) in best.items())
    return sorted(entries)


def build_candidates(
    source: FlatIds, target: FlatIds, links: Iterable[Sequence[tuple[int, int]]], most: int
) -> Candidates:
    """Return up to `most` candidates of each source token; ties are in order of ids.

    Args:
        links: for each sentence pair, its (source, target) positions from 0.
    """
    pairs, counts = np.zeros(0, np.int64), np.zeros(0, np.int64)  # distinct pairs, and their links
    for found in linked_pairs(source, target, links):
        every, weights = np.append(pairs, found), np.append(counts, np.ones_like(found))
        pairs, places = np.unique(every, return_inverse=True)
        counts = np.bincount(places, weights).astype(np.int64)  # exact: float64 counts to 2^53
    sources, targets = pairs >> 32, pairs & 0xFFFFFFFF
    order = np.lexsort((targets, -counts, sources))
    offsets = np.insert(np.cumsum(np.bincount(sources)), 0, 0)
    return Candidates(offsets, targets[order].astype(np.int32)).top(most)


def linked_pairs(
    source: FlatIds, target: FlatIds, links: Iterable[Sequence[tuple[int, int]]]
) -> Iterator[NDArray[np.int64]]:
    """Yield each pair of linked tokens as source * 2^32 + target, in blocks of about HELD_LINKS."""
    held = array("q")
    for number, pair_links in enumerate(links):
        left, right = source[number].tolist(), target[number].tolist()
        held.extend([left[i] << 32 | right[j] for i, j in pair_links])
        if len(held) >= HELD_LINKS:
            yield np.array(held)
            held = array("q")
    yield np.array(held)
