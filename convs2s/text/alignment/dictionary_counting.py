"""Links of an aligned corpus -> the dictionary of unknown-word replacement (§4.3, T33)."""

from collections import Counter
from collections.abc import Iterable, Sequence

from convs2s.text.alignment.dictionary import Entry
from convs2s.text.alignment.word_ids import numbering

NEAR_TIE = 0.9
"""Target words with at least this share of the most frequent one's links compete with it."""


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
