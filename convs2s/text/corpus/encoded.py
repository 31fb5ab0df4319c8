"""Encoded sentences on disk: one flat array of ids per side, and where each sentence starts in it."""

import contextlib
from collections.abc import Iterable
from pathlib import Path
from typing import IO, Any, NamedTuple, Self

import numpy as np
from numpy.typing import DTypeLike, NDArray

from convs2s.text.corpus.files import atomic_path
from convs2s.text.corpus.pair_folder import SIDES

Ids = NDArray[np.integer[Any]]
Offsets = NDArray[np.int64]


class EncodedSentences(NamedTuple):
    """Consecutive sentences of one side."""

    ids: Ids
    """Of all sentences, one after the other, each ended by EOS."""
    lengths: Offsets
    """Tokens of each sentence, EOS counted."""


def id_type(vocabulary_size: int) -> np.dtype[Any]:
    """Return the smallest dtype that we use for ids below `vocabulary_size`."""
    return np.dtype(np.uint16 if vocabulary_size < 2**16 else np.int32)


class EncodedCorpus:
    """The sentences of one side of a corpus, memory-mapped: opening reads only their lengths.

    Attributes:
        ids: of all sentences, one after the other, each ended by EOS.
        offsets: sentence i is ids[offsets[i]:offsets[i + 1]].
        lengths: tokens of each sentence, EOS counted.
    """

    def __init__(self, ids: Ids, offsets: Offsets) -> None:
        self.ids = ids
        self.offsets = offsets
        self.lengths: Offsets = np.diff(offsets)

    @classmethod
    def open(cls, folder: Path, side: str) -> Self:
        """Open a side, "source" or "target", of a folder that `write_encoded` wrote.

        Raises:
            FileNotFoundError: if a file is missing.
            ValueError: if a file is damaged, or the sides differ in their number of sentences.
        """
        ids = open_array(folder / f"{side}.ids.npy")
        offsets = open_array(folder / f"{side}.offsets.npy")
        if not len(offsets) or offsets[0] != 0 or offsets[-1] != len(ids) or np.any(np.diff(offsets) < 1):
            found = f"from {offsets[0]:,} to {offsets[-1]:,}" if len(offsets) else "over nothing"
            raise ValueError(
                f"{folder}: {side}.ids.npy has {len(ids):,} ids but {side}.offsets.npy goes {found}. Wanted "
                "offsets that rise from 0 to the number of ids: was a file truncated or swapped? Make both "
                "again: dvc repro -f encode."
            )
        check_sides(folder)
        return cls(ids, offsets)

    def __len__(self) -> int:
        return len(self.lengths)

    def __getitem__(self, i: int) -> Ids:
        """Return the ids of sentence i, EOS at the end."""
        if not 0 <= i < len(self):
            raise IndexError(f"sentence {i} of {len(self):,}; wanted 0 to {len(self) - 1:,}")
        return self.ids[self.offsets[i] : self.offsets[i + 1]]


def check_sides(folder: Path) -> None:
    """Raise ValueError if the two sides differ in their number of sentences."""
    source, target = (len(open_array(folder / f"{side}.offsets.npy")) - 1 for side in SIDES)
    if source != target:
        raise ValueError(
            f"{folder}: source has {source:,} sentences but target has {target:,}. Sentence i of one must "
            "translate sentence i of the other: make both again with dvc repro -f encode."
        )


def open_array(path: Path) -> NDArray[Any]:
    """Memory-map a one-dimensional array of integers.

    Raises:
        FileNotFoundError: if there is no such file.
        ValueError: if it is not one, or is truncated.
    """
    if not path.is_file():
        raise FileNotFoundError(f"{path} does not exist. Wanted an encoded corpus: run dvc repro encode.")
    try:
        array: NDArray[Any] = np.load(path, mmap_mode="r", allow_pickle=False)
    except (ValueError, EOFError, OSError) as error:
        raise ValueError(
            f"{path} is truncated or no .npy file ({error}). Wanted the whole file that the stage encode "
            "wrote: make it again with dvc repro -f encode."
        ) from error
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise ValueError(
            f"{path} holds {array.dtype} of shape {array.shape}, wanted a list of integers. Did another "
            "program write it? Make it again: dvc repro -f encode."
        )
    return array


class ArrayWriter:
    """Writes a one-dimensional .npy file piece by piece; a context manager, which completes the file."""

    def __init__(self, path: Path, dtype: DTypeLike) -> None:
        self._stream: IO[bytes] = path.open("wb")
        self._dtype = np.dtype(dtype)
        self._length = 0
        self._header()

    def append(self, values: NDArray[Any]) -> None:
        self._stream.write(values.astype(self._dtype, copy=False).tobytes())
        self._length += len(values)

    def _header(self) -> None:
        # numpy leaves room in the header for a longer first axis, so it can be rewritten in place.
        descr = np.lib.format.dtype_to_descr(self._dtype)
        header = {"shape": (self._length,), "fortran_order": False, "descr": descr}
        np.lib.format.write_array_header_1_0(self._stream, header)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        with self._stream:
            if error[0] is None:
                self._stream.seek(0)
                self._header()


class SideWriter:
    """Writes one side's ids and offsets; its files are closed by `stack`."""

    def __init__(self, folder: Path, side: str, dtype: DTypeLike, stack: contextlib.ExitStack) -> None:
        self._ids = stack.enter_context(ArrayWriter(folder / f"{side}.ids.npy", dtype))
        self._offsets = stack.enter_context(ArrayWriter(folder / f"{side}.offsets.npy", np.int64))
        self._offsets.append(np.zeros(1, dtype=np.int64))
        self._end = 0

    def append(self, sentences: EncodedSentences) -> None:
        self._ids.append(sentences.ids)
        self._offsets.append(self._end + np.cumsum(sentences.lengths))
        self._end += len(sentences.ids)


def write_encoded(
    folder: Path, chunks: Iterable[list[EncodedSentences]], vocabulary_sizes: tuple[int, int]
) -> None:
    """Write chunks of source and target sentences to a folder, which appears only once complete.

    Args:
        vocabulary_sizes: number of ids of each side, which decides the dtype of its array.
    """
    with atomic_path(folder) as temporary, contextlib.ExitStack() as stack:
        temporary.mkdir()
        writers = [
            SideWriter(temporary, side, id_type(size), stack)
            for side, size in zip(SIDES, vocabulary_sizes, strict=True)
        ]
        for chunk in chunks:
            for writer, sentences in zip(writers, chunk, strict=True):
                writer.append(sentences)
