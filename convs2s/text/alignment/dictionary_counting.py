"""Links of an aligned corpus -> the dictionary of unknown-word replacement (§4.3, T33)."""

from collections import Counter
from collections.abc import Iterable, Sequence

from convs2s.text.alignment.dictionary import Entry
from convs2s.text.alignment.word_ids import numbering


def build_dictionary(
    pairs: Iterable[tuple[str, str]], links: Iterable[Sequence[tuple[int, int]]]
) -> list[Entry]:
    """Return an entry for each source word that has a link, in code point order of source words.

    On a tie, the target word that is first in code point order is taken.

    Args:
        pairs: sentence pairs, whitespace-separated words.
        links: for each pair its (source, target) positions from 0.
    """
    source_numbers, target_numbers = numbering(), numbering()
    counts: Counter[tuple[int, int]] = Counter()
    for (source, target), pair_links in zip(pairs, links, strict=True):
        left = [source_numbers[word] for word in source.split()]
        right = [target_numbers[word] for word in target.split()]
        counts.update([(left[i], right[j]) for i, j in pair_links])
    sources, targets = list(source_numbers), list(target_numbers)
    totals: Counter[int] = Counter()
    best: dict[int, tuple[int, str]] = {}
    for (s, t), count in counts.items():
        totals[s] += count
        candidate = (-count, targets[t])
        best[s] = min(best.get(s, candidate), candidate)
    entries = (Entry(sources[s], word, -count, totals[s]) for s, (count, word) in best.items())
    return sorted(entries)
