"""The types of a language and their ids, and how often each occurs in training text."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from convs2s.text.corpus.files import read_lines, write_lines
from convs2s.text.corpus.parallel import map_chunks

# Own order (T20); importers of other programs' models map ids. EOS also starts the decoder input (T19).
PAD, EOS, UNK = 0, 1, 2
SPECIALS = ("<pad>", "</s>", "<unk>")

CHUNK_PAIRS = 20_000


class Vocabulary:
    """Types and their ids: PAD, EOS, UNK, then the types in order.

    A word of the text that is spelled as a special, such as "</s>", is a type as any other.
    """

    def __init__(self, types: Sequence[str]) -> None:
        """Args: types: without the specials, each once."""
        self._types = [*SPECIALS, *types]
        self._ids = {type_: i for i, type_ in enumerate(types, start=len(SPECIALS))}
        assert len(self._ids) == len(types), "a type occurs twice"

    def __len__(self) -> int:
        """Return the number of ids, the specials' included."""
        return len(self._types)

    def __contains__(self, type_: str) -> bool:
        return type_ in self._ids

    @property
    def types(self) -> list[str]:
        """The types, without the specials."""
        return self._types[len(SPECIALS) :]

    def ids(self, types: list[str]) -> list[int]:
        """Return an id for each type, UNK for unknown ones."""
        return [self._ids.get(type_, UNK) for type_ in types]

    def type(self, id_: int) -> str:
        """Return the type of an id; "<pad>", "</s>" or "<unk>" for the specials."""
        return self._types[id_]


def read_vocabulary(path: Path) -> Vocabulary:
    """Read a file of lines 'type TAB count'.

    Raises:
        FileNotFoundError: if there is no such file.
        ValueError: if a line is something else, or a type occurs twice.
    """
    types: dict[str, int] = {}
    for number, line in enumerate(read_lines(path), start=1):
        type_, tab, count = line.partition("\t")
        if not (type_ and tab and count.isdecimal()):
            raise ValueError(
                f"{path}, line {number}: found {line!r}, wanted 'type TAB count'. Was the file edited? Make "
                "it again: dvc repro -f vocabulary."
            )
        if type_ in types:
            raise ValueError(
                f"{path}, line {number}: the type {type_!r} stands in line {types[type_]} already, wanted "
                "each once. Was the file edited? Make it again: dvc repro -f vocabulary."
            )
        types[type_] = number
    return Vocabulary(list(types))


def write_vocabulary(path: Path, counts: Sequence[tuple[str, int]]) -> None:
    """Write types with their counts in the order given, which is that of their ids."""
    write_lines(path, [f"{type_}\t{count}" for type_, count in counts])


def most_frequent(counts: Mapping[str, int]) -> list[tuple[str, int]]:
    """Return types and counts, most frequent first, equally frequent ones by their characters' codes."""
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
    """Return the error that says that the training text does not allow such a large vocabulary."""
    return ValueError(
        f"{name} is {size:,} but the training text has only {most:,} {what}. Wanted at most {most:,}: lower "
        f"{name} in params.yaml, or add training data."
    )


class WordCounter:
    """Counts the words of chunks of pairs, a side at a time."""

    def __call__(self, pairs: list[tuple[str, str]]) -> tuple[Counter[str], Counter[str]]:
        source: Counter[str] = Counter()
        target: Counter[str] = Counter()
        for one, other in pairs:
            source.update(one.split())
            target.update(other.split())
        return source, target


def count_words(pairs: Iterable[tuple[str, str]]) -> tuple[Counter[str], Counter[str]]:
    """Count source and target words on all cores; memory grows with the number of different words only."""
    source: Counter[str] = Counter()
    target: Counter[str] = Counter()
    for one, other in map_chunks(WordCounter, pairs, CHUNK_PAIRS, "count words"):
        source.update(one)
        target.update(other)
    return source, target
