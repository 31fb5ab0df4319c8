"""Sentences as one flat array of ids, and the offset of each sentence: in memory and as .npy files."""

from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import DTypeLike, NDArray

Ids = NDArray[np.integer[Any]]
Offsets = NDArray[np.int64]


class FlatIds:
    """Sentences of ids; the arrays may be memory-mapped.

    Attributes:
        ids: of all sentences, concatenated.
        offsets: sentence i is ids[offsets[i]:offsets[i + 1]].
    """

    def __init__(self, ids: Ids, offsets: Offsets) -> None:
        self.ids = ids
        self.offsets = offsets

    @property
    def lengths(self) -> NDArray[np.int32]:
        """Number of ids in each sentence; computed anew, because a training never needs them for long."""
        lengths = np.empty(len(self), np.int32)
        return np.subtract(self.offsets[1:], self.offsets[:-1], out=lengths, casting="same_kind")

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, i: int) -> Ids:
        """Return the ids of sentence i."""
        if not 0 <= i < len(self):
            raise IndexError(f"expected a sentence from 0 to {len(self) - 1:,}, found {i}")
        return self.ids[self.offsets[i] : self.offsets[i + 1]]

    def load(self, first: int, last: int) -> tuple[Ids, Offsets]:
        """Return the ids of sentences [first, last), read into memory, and their offsets from 0."""
        offsets = np.array(self.offsets[first : last + 1])
        return np.array(self.ids[offsets[0] : offsets[-1]]), offsets - offsets[0]


class ArrayWriter:
    """Writes a one-dimensional .npy file piece by piece; it is complete once closed."""

    def __init__(self, path: Path, dtype: DTypeLike) -> None:
        self._stream = path.open("wb")
        self._dtype = np.dtype(dtype)
        self._length = 0
        self._header()

    def append(self, values: NDArray[Any]) -> None:
        self._stream.write(values.astype(self._dtype, copy=False).tobytes())
        self._length += len(values)

    def _header(self) -> None:
        # numpy leaves room in the header for a larger first axis, so it can be rewritten in place.
        descr = np.lib.format.dtype_to_descr(self._dtype)
        header = {"shape": (self._length,), "fortran_order": False, "descr": descr}
        np.lib.format.write_array_header_1_0(self._stream, header)

    def close(self) -> None:
        with self._stream:
            self._stream.seek(0)
            self._header()


class FlatIdsWriter:
    """Writes NAME.ids.npy and NAME.offsets.npy in chunks; a context manager that completes them on exit."""

    def __init__(self, folder: Path, name: str, dtype: DTypeLike) -> None:
        self.ids, self.offsets = folder / f"{name}.ids.npy", folder / f"{name}.offsets.npy"
        self._ids, self._offsets = ArrayWriter(self.ids, dtype), ArrayWriter(self.offsets, np.int64)
        self._offsets.append(np.zeros(1, dtype=np.int64))
        self._end = 0

    def append(self, ids: Ids, lengths: Offsets) -> None:
        """Append sentences: all their ids, and the length of each."""
        self._ids.append(ids)
        self._offsets.append(self._end + np.cumsum(lengths))
        self._end += len(ids)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._ids.close()
        self._offsets.close()
