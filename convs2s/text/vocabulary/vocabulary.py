"""The vocabulary of a language: words or pieces, their ids, and how often each occurs in training text."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from convs2s.text.corpus.files import read_lines, write_lines
from convs2s.text.corpus.parallel import map_chunks

# Our own order (T20); importers of other programs' models map ids. EOS also starts the decoder input (T19).
PAD, EOS, UNK = 0, 1, 2
SPECIALS = ("<pad>", "</s>", "<unk>")

CHUNK_PAIRS = 20_000


class Vocabulary:
    """Entries (types: words or pieces) and their ids: PAD, EOS, UNK, then the entries in order.

    A word of the text spelled like a special symbol, such as "</s>", is an entry like any other.
    """

    def __init__(self, types: Sequence[str]) -> None:
        """Args: types: without the special symbols, each once."""
        self._types = [*SPECIALS, *types]
        self._ids = {type_: i for i, type_ in enumerate(types, start=len(SPECIALS))}
        assert len(self._ids) == len(types), "an entry occurs twice"

    def __len__(self) -> int:
        """Return the number of ids, special symbols included."""
        return len(self._types)

    def __contains__(self, type_: str) -> bool:
        return type_ in self._ids

    @property
    def types(self) -> list[str]:
        """The entries, without the special symbols."""
        return self._types[len(SPECIALS) :]

    def ids(self, types: list[str]) -> list[int]:
        """Return an id for each word or piece, UNK for unknown ones."""
        return [self._ids.get(type_, UNK) for type_ in types]

    def type(self, id_: int) -> str:
        """Return the entry with an id; "<pad>", "</s>" or "<unk>" for the special symbols."""
        return self._types[id_]


def read_vocabulary(path: Path) -> Vocabulary:
    """Read a file of lines 'entry TAB count'.

    Raises:
        FileNotFoundError: if there is no such file.
        ValueError: if a line is something else, or an entry occurs twice.
    """
    lines: dict[str, int] = {}
    for number, line in enumerate(read_lines(path), start=1):
        entry, tab, count = line.partition("\t")
        if not (entry and tab and count.isdecimal()):
            raise ValueError(
                f"{path}, line {number}: found {line!r}, wanted 'entry TAB count'. Was the file edited? Make "
                "it again: dvc repro -f vocabulary."
            )
        if entry in lines:
            raise ValueError(
                f"{path}, line {number}: the entry {entry!r} is already in line {lines[entry]}, wanted each "
                "once. Was the file edited? Make it again: dvc repro -f vocabulary."
            )
        lines[entry] = number
    return Vocabulary(list(lines))


def write_vocabulary(path: Path, counts: Sequence[tuple[str, int]]) -> None:
    """Write entries with their counts in the given order, which is the order of their ids."""
    write_lines(path, [f"{entry}\t{count}" for entry, count in counts])


def most_frequent(counts: Mapping[str, int]) -> list[tuple[str, int]]:
    """Return entries and counts, most frequent first, then by code points."""
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))


def frequent_words(counts: Mapping[str, int], size: int, name: str) -> list[tuple[str, int]]:
    """Return the `size` most frequent words with their counts.

    Args:
        name: of the parameter that holds `size`, for the message.

    Raises:
        ValueError: if there are fewer words than that.
    """
    if size > len(counts):
        raise too_large(name, size, len(counts), "different words")
    return most_frequent(counts)[:size]


def too_large(name: str, size: int, most: int, what: str) -> ValueError:
    """Return the error for a vocabulary larger than the training text allows."""
    return ValueError(
        f"{name} is {size:,} but the training text has only {most:,} {what}. Wanted at most {most:,}: lower "
        f"{name} in params.yaml, or add training data."
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
    """Count source and target words on all cores; memory grows only with the number of different words."""
    source: Counter[str] = Counter()
    target: Counter[str] = Counter()
    for one, other in map_chunks(WordCounter, pairs, CHUNK_PAIRS, "count words"):
        source.update(one)
        target.update(other)
    return source, target
