"""Encoded sentences on disk: per side, one flat array of ids and the offset of each sentence."""

import contextlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import DTypeLike, NDArray

from convs2s.base.files import SIDES, atomic_path
from convs2s.base.messages import is_out_of_memory

Ids = NDArray[np.integer[Any]]
Offsets = NDArray[np.int64]


class EncodedSentences(NamedTuple):
    """Consecutive sentences of one side."""

    ids: Ids
    """Of all sentences, concatenated, each ending with EOS."""
    lengths: Offsets
    """Tokens in each sentence, including EOS."""


def id_type(vocabulary_size: int) -> np.dtype[Any]:
    """Return the smallest dtype that we use for ids below `vocabulary_size`."""
    return np.dtype(np.uint16 if vocabulary_size < 2**16 else np.int32)


def flatten(sentences: list[list[int]], vocabulary_size: int) -> EncodedSentences:
    """Return sentences of ids as arrays."""
    ids = np.array([id_ for sentence in sentences for id_ in sentence], dtype=id_type(vocabulary_size))
    return EncodedSentences(ids, np.array([len(sentence) for sentence in sentences], dtype=np.int64))


class FlatIds:
    """Sentences of ids; the arrays may be memory-mapped.

    Attributes:
        ids: of all sentences, concatenated.
        offsets: sentence i is ids[offsets[i]:offsets[i + 1]].
    """

    def __init__(self, ids: Ids, offsets: Offsets) -> None:
        self.ids, self.offsets = ids, offsets

    @property
    def lengths(self) -> NDArray[np.int32]:
        """Number of ids in each sentence; computed anew, because a training never needs them for long."""
        return np.subtract(self.offsets[1:], self.offsets[:-1], dtype=np.int32, casting="same_kind")

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, i: int) -> Ids:
        """Return the ids of sentence i."""
        return self.ids[self.offsets[i] : self.offsets[i + 1]]

    def load(self, first: int, last: int) -> tuple[Ids, Offsets]:
        """Return the ids of sentences [first, last), read into memory, and their offsets from 0."""
        offsets = np.array(self.offsets[first : last + 1])
        return np.array(self.ids[offsets[0] : offsets[-1]]), offsets - offsets[0]


class EncodedCorpus(FlatIds):
    """The sentences of one side of a corpus, each ending with EOS, memory-mapped."""

    @classmethod
    def open(cls, folder: Path, side: str) -> Self:
        """Open a side, "source" or "target", of a folder written by `write_encoded`."""
        ids = open_array(folder / f"{side}.ids.npy")
        source, target = (open_array(folder / f"{name}.offsets.npy") for name in SIDES)
        offsets = source if side == "source" else target
        rises = len(offsets) and offsets[0] == 0 and np.all(offsets[1:] > offsets[:-1])
        if not (rises and offsets[-1] == len(ids) and len(source) == len(target)):
            both = " and ".join(np.array2string(array, threshold=4) for array in (source, target))
            raise ValueError(
                f"{folder}: expected {side}.offsets.npy to rise from 0 to the {len(ids):,} ids of "
                f"{side}.ids.npy, with as many sentences on either side, found {both}. Was a file truncated "
                "or swapped? Make both again: dvc repro -f encode."
            )
        return cls(ids, offsets)


def open_array(path: Path) -> NDArray[Any]:
    """Memory-map a list of integers; a FileNotFoundError, or a ValueError if the file holds anything else."""
    if not path.is_file():
        raise FileNotFoundError(f"{path} does not exist. Expected an encoded corpus: run dvc repro encode.")
    try:
        array: NDArray[Any] = np.lib.format.open_memmap(path, mode="r")
        if array.ndim != 1 or array.dtype.kind not in "iu":
            raise TypeError(f"found {array.dtype} of shape {array.shape}")
    except Exception as error:  # the header is Python source, and numpy passes on its parser's errors
        if is_out_of_memory(error):
            raise
        raise ValueError(
            f"{path}: expected a whole .npy file with a list of integers ({error}). Make it again: "
            "dvc repro -f encode."
        ) from error
    return np.asarray(array)  # a slice of a memmap takes ten times as long


class FlatIdsWriter:
    """Writes NAME.ids.npy and NAME.offsets.npy in chunks; a context manager that completes them on exit."""

    def __init__(self, folder: Path, name: str, dtype: DTypeLike) -> None:
        self.ids, self.offsets = folder / f"{name}.ids.npy", folder / f"{name}.offsets.npy"
        self._stream = self.ids.open("wb")
        self._dtype = np.dtype(dtype)
        self._lengths = [np.zeros(1, np.int64)]
        self._write_header()

    def append(self, ids: Ids, lengths: Offsets) -> None:
        """Append sentences: all their ids, and the length of each."""
        self._stream.write(ids.astype(self._dtype, copy=False).tobytes())
        self._lengths.append(lengths)

    def _write_header(self) -> Offsets:
        """Write the header; numpy leaves room in it for more ids, so it can be rewritten in place."""
        offsets = np.cumsum(np.concatenate(self._lengths), dtype=np.int64)
        descr = np.lib.format.dtype_to_descr(self._dtype)
        header = {"shape": (int(offsets[-1]),), "fortran_order": False, "descr": descr}
        self._stream.seek(0)
        np.lib.format.write_array_header_1_0(self._stream, header)
        return offsets

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        with self._stream:
            np.save(self.offsets, self._write_header())


def write_encoded(
    folder: Path, chunks: Iterable[list[EncodedSentences]], vocabulary_sizes: tuple[int, int]
) -> None:
    """Write chunks of source and target sentences to a folder, which appears only once complete.

    Args:
        vocabulary_sizes: number of ids of each side, which determines the dtype of its array.
    """
    with atomic_path(folder) as temporary, contextlib.ExitStack() as stack:
        temporary.mkdir()
        writers = [
            stack.enter_context(FlatIdsWriter(temporary, side, id_type(size)))
            for side, size in zip(SIDES, vocabulary_sizes, strict=True)
        ]
        for chunk in chunks:
            for writer, sentences in zip(writers, chunk, strict=True):
                writer.append(sentences.ids, sentences.lengths)
