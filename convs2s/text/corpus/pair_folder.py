"""A folder of sentence pairs: source.txt and target.txt, line i of one translating line i of the other."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Self

from convs2s.text.corpus.files import atomic_path, read_pairs

SIDES = ("source", "target")


def read_folder(folder: Path) -> Iterator[tuple[str, str]]:
    """Yield the pairs of a folder.

    Raises:
        FileNotFoundError, ValueError: as `read_pairs`.
    """
    return read_pairs(folder / "source.txt", folder / "target.txt")


def further_references(folder: Path) -> list[Path]:
    """Return the reference files other than target.txt, in order: target.2.txt, target.3.txt, ..."""
    return sorted(folder.glob("target.*.txt"), key=lambda path: int(path.name.split(".")[1]))


class PairWriter:
    """Writes pairs to a new folder; a context manager that closes the files."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self._source = (folder / "source.txt").open("w", encoding="utf-8", newline="\n")
        self._target = (folder / "target.txt").open("w", encoding="utf-8", newline="\n")

    def write(self, source: str, target: str) -> None:
        """Append a pair; neither sentence may contain a line end."""
        self._source.write(source + "\n")
        self._target.write(target + "\n")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._source.close()
        self._target.close()


def write_folder(folder: Path, pairs: Iterable[tuple[str, str]]) -> None:
    """Write pairs to a folder, which appears only once complete."""
    with atomic_path(folder) as temporary, PairWriter(temporary) as writer:
        for source, target in pairs:
            writer.write(source, target)
