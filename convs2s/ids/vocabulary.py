"""The vocabulary of a language: words or pieces, their ids, and how often each occurs in training text."""

import reprlib
from collections.abc import Mapping, Sequence
from pathlib import Path

from convs2s.base.files import read_lines, write_lines

# Our own order (T20); importers of other programs' models map ids. EOS also starts the decoder input (T19).
PAD, EOS, UNK = 0, 1, 2
SPECIALS = ("<pad>", "</s>", "<unk>")
MOST_DIGITS = 15
"""No corpus has an entry more often than a number of so many digits says."""


class Vocabulary:
    """Entries (words or pieces) and their ids: PAD, EOS, UNK, then the entries in order.

    A word of the text that looks like a special symbol, such as "</s>", is an entry like any other.
    """

    def __init__(self, entries: Sequence[str]) -> None:
        """Number the special symbols, then these entries, which must be different and none of the former."""
        self._entries = [*SPECIALS, *entries]
        self._ids = {entry: i for i, entry in enumerate(entries, start=len(SPECIALS))}
        assert len(self._ids) == len(entries), "an entry occurs twice"

    def __len__(self) -> int:
        """Return the number of ids, special symbols included."""
        return len(self._entries)

    def __contains__(self, entry: str) -> bool:
        return entry in self._ids

    @property
    def entries(self) -> list[str]:
        """The entries, without the special symbols."""
        return self._entries[len(SPECIALS) :]

    def ids(self, tokens: list[str]) -> list[int]:
        """Return an id for each word or piece, UNK for unknown ones."""
        return [self._ids.get(token, UNK) for token in tokens]

    def entry(self, id_: int) -> str:
        """Return the entry with an id; "<pad>", "</s>" or "<unk>" for the special symbols."""
        return self._entries[id_]


def read_vocabulary(path: Path) -> Vocabulary:
    """Read the vocabulary of a file written by `write_vocabulary`; errors are those of `read_counts`."""
    return Vocabulary(list(read_counts(path, "vocabulary")))


def read_counts(path: Path, stage: str) -> dict[str, int]:
    """Read a file of lines 'entry TAB count', written by a stage."""
    counts: dict[str, int] = {}
    for number, line in enumerate(read_lines(path), start=1):
        entry, _, count = line.partition("\t")
        if not (entry and count.isdecimal() and len(count) <= MOST_DIGITS) or entry in counts:
            raise ValueError(
                f"{path}, line {number}: expected 'entry TAB count', with an entry that no line before has, "
                f"found {reprlib.repr(line)}. Was the file edited? Make it again: dvc repro -f {stage}."
            )
        counts[entry] = int(count)
    return counts


def write_vocabulary(path: Path, counts: Sequence[tuple[str, int]]) -> None:
    """Write entries with their counts, in order of their ids."""
    write_lines(path, [f"{entry}\t{count}" for entry, count in counts])


def most_frequent(counts: Mapping[str, int]) -> list[tuple[str, int]]:
    """Return entries and counts, most frequent first, ties in code point order."""
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))
