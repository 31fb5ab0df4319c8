"""Count the words of training text, and find the most frequent ones."""

from collections import Counter
from collections.abc import Iterable, Mapping

from convs2s.text.corpus.parallel import map_chunks

CHUNK_PAIRS = 20_000


def most_frequent(counts: Mapping[str, int]) -> list[tuple[str, int]]:
    """Return entries and counts, most frequent first, ties in code point order."""
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))


def frequent_words(counts: Mapping[str, int], size: int, name: str) -> list[tuple[str, int]]:
    """Return the `size` most frequent words with their counts.

    Args:
        name: of the parameter that holds `size`, for the message.

    Raises:
        ValueError: if there are fewer words.
    """
    if size > len(counts):
        raise too_large(name, size, len(counts), "different words")
    return most_frequent(counts)[:size]


def too_large(name: str, size: int, most: int, what: str) -> ValueError:
    """Return the error for a vocabulary larger than the training text allows."""
    return ValueError(
        f"{name} is {size:,} but the training text has only {most:,} {what}. Expected at most {most:,}: "
        f"lower {name} in params.yaml, or add training data."
    )


class WordCounter:
    """Counts the words of chunks of pairs, one side at a time."""

    def __call__(self, pairs: list[tuple[str, str]]) -> tuple[Counter[str], Counter[str]]:
        source: Counter[str] = Counter()
        target: Counter[str] = Counter()
        for one, other in pairs:
            source.update(one.split())
            target.update(other.split())
        return source, target


def count_words(pairs: Iterable[tuple[str, str]]) -> tuple[Counter[str], Counter[str]]:
    """Count source and target words on all cores; memory grows only with the number of distinct words."""
    source: Counter[str] = Counter()
    target: Counter[str] = Counter()
    for one, other in map_chunks(WordCounter, pairs, CHUNK_PAIRS, "count words"):
        source.update(one)
        target.update(other)
    return source, target
