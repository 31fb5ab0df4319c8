"""Encoded sentences on disk: per side, one flat array of ids and the offset of each sentence."""

import contextlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from convs2s.base.files import SIDES, atomic_path
from convs2s.ids.flat_ids import FlatIds, FlatIdsWriter, Ids, Offsets
from convs2s.ids.vocabulary import EOS

CHECKED_IDS = 1 << 20  # ids checked at a time; this many stay in the CPU's cache


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


class EncodedCorpus(FlatIds):
    """The sentences of one side of a corpus, each ending with EOS, memory-mapped."""

    @classmethod
    def open(cls, folder: Path, side: str, vocabulary_size: int | None = None) -> Self:
        """Open a side, "source" or "target", of a folder written by `write_encoded`.

        Args:
            vocabulary_size: if given, all ids are read once and checked: about two seconds for a billion.

        Raises:
            FileNotFoundError: if a file is missing.
            ValueError: if a file is damaged, or the sides differ in their number of sentences.
        """
        ids = open_array(folder / f"{side}.ids.npy")
        sides = {name: open_array(folder / f"{name}.offsets.npy") for name in SIDES}
        offsets = sides[side]
        rises = (
            len(offsets)
            and offsets[0] == 0
            and offsets[-1] == len(ids)
            and np.all(offsets[1:] > offsets[:-1])
        )
        if not rises or len({len(each) for each in sides.values()}) > 1:
            found = " and ".join(np.array2string(each, threshold=4) for each in sides.values())
            raise ValueError(
                f"{folder}: expected {side}.offsets.npy to rise from 0 to the {len(ids):,} ids of "
                f"{side}.ids.npy, with as many sentences on either side, found {found}. Was a file truncated "
                "or swapped? Make both again: dvc repro -f encode."
            )
        if vocabulary_size is not None:
            check_ids(ids, offsets, vocabulary_size, folder / f"{side}.ids.npy")
        return cls(ids, offsets)


def check_ids(ids: Ids, offsets: Offsets, vocabulary_size: int, origin: Path) -> None:
    """Check that each sentence consists of vocabulary ids other than PAD, with EOS at its end only.

    Raises:
        ValueError: if one does not; the message has the range of ids.
    """
    for start in range(0, len(ids), CHECKED_IDS):
        part = np.asarray(ids[start : start + CHECKED_IDS])
        first, last = np.searchsorted(offsets, [start, start + len(part)], side="right")
        ends = offsets[first:last] - 1 - start
        lowest, highest = int(part.min()), int(part.max())
        if (
            lowest < EOS
            or highest >= vocabulary_size
            or not np.array_equal(np.flatnonzero(part == EOS), ends)
        ):
            raise ValueError(
                f"{origin}: expected ids from {EOS} to {vocabulary_size - 1:,}, with {EOS} (EOS) where a "
                f"sentence ends and nowhere else, found {lowest} to {highest:,} at positions {start:,} to "
                f"{start + len(part):,}. Is the file damaged, or does it belong to another vocabulary? "
                "Make it again: dvc repro -f encode."
            )


def open_array(path: Path) -> NDArray[Any]:
    """Memory-map a one-dimensional array of integers.

    Raises:
        FileNotFoundError: if there is no such file.
        ValueError: if the file is truncated or holds something else.
    """
    if not path.is_file():
        raise FileNotFoundError(f"{path} does not exist. Expected an encoded corpus: run dvc repro encode.")
    try:
        array: NDArray[Any] = np.load(path, mmap_mode="r", allow_pickle=False)
        if array.ndim != 1 or array.dtype.kind not in "iu":
            raise TypeError(f"found {array.dtype} of shape {array.shape}")
    except Exception as error:  # the header is Python source, and numpy passes on its parser's errors
        raise ValueError(
            f"{path}: expected a whole .npy file with a list of integers ({error}). Make it again: "
            "dvc repro -f encode."
        ) from error
    return np.asarray(array)  # a slice of a memmap takes ten times as long


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
