"""The types of a language and their ids, and how often each occurs in training text."""

from collections.abc import Sequence
from pathlib import Path

from convs2s.text.corpus.files import read_lines, write_lines

# Own order (T20); importers of other programs' models map ids. EOS also starts the decoder input (T19).
PAD, EOS, UNK = 0, 1, 2
SPECIALS = ("<pad>", "</s>", "<unk>")


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
