"""Encoded sentences on disk: per side, one flat array of ids and the offset of each sentence."""

import contextlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from convs2s.text.corpus.files import SIDES, atomic_path
from convs2s.text.corpus.flat_ids import FlatIds, FlatIdsWriter, Ids, Offsets
from convs2s.text.counted import counted
from convs2s.text.vocabulary.vocabulary import EOS

ANY_VOCABULARY = 2**31
"""A vocabulary size that allows any id."""

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
        offsets = open_array(folder / f"{side}.offsets.npy")
        if not len(offsets) or offsets[0] != 0 or offsets[-1] != len(ids) or np.any(np.diff(offsets) < 1):
            found = f"goes from {offsets[0]:,} to {offsets[-1]:,}" if len(offsets) else "is empty"
            raise ValueError(
                f"{folder}: {side}.ids.npy has {counted(len(ids), 'id')} but {side}.offsets.npy {found}. "
                "Expected offsets that rise from 0 to the number of ids: was a file truncated or swapped? "
                "Make both again: dvc repro -f encode."
            )
        check_sides(folder)
        if vocabulary_size is not None:
            check_ids(ids, offsets, vocabulary_size, folder / f"{side}.ids.npy")
        return cls(ids, offsets)


def check_sides(folder: Path) -> None:
    """Raise ValueError if the two sides differ in their number of sentences."""
    source, target = (len(open_array(folder / f"{side}.offsets.npy")) - 1 for side in SIDES)
    if source != target:
        raise ValueError(
            f"{folder}: source has {counted(source, 'sentence')} but target has {target:,}. Sentence i of "
            "one must translate sentence i of the other: make both again with dvc repro -f encode."
        )


def check_ids(ids: Ids, offsets: Offsets, vocabulary_size: int, origin: Path) -> None:
    """Check that each sentence consists of vocabulary ids other than PAD, with EOS at its end only.

    Raises:
        ValueError: if one does not; the message has the range of ids.
    """
    sentence = 0
    for start in range(0, len(ids), CHECKED_IDS):
        part = np.asarray(ids[start : start + CHECKED_IDS])
        stop = start + len(part)
        finished = int(np.searchsorted(offsets, stop, side="right")) - 1
        ends, expected = np.flatnonzero(part == EOS) + start, offsets[sentence + 1 : finished + 1] - 1
        lowest, highest = int(part.min()), int(part.max())
        if lowest < EOS or highest >= vocabulary_size or not np.array_equal(ends, expected):
            raise ValueError(
                f"{origin}: ids at positions {start:,} to {stop:,} range from {lowest} to {highest:,}, with "
                f"{len(ends):,} EOS for {len(expected):,} sentences. Expected {EOS} to "
                f"{vocabulary_size - 1:,}, and {EOS} (EOS) only where a sentence ends. Is the file damaged, "
                "or does it belong to another vocabulary? Make it again: dvc repro -f encode."
            )
        sentence = finished


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
    except Exception as error:  # the header is Python source, and numpy passes on its parser's errors
        raise ValueError(
            f"{path} is truncated or not a .npy file ({error}). Expected the complete file written by the "
            "stage encode: make it again with dvc repro -f encode."
        ) from error
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise ValueError(
            f"{path}: expected a list of integers, found {array.dtype} of shape {array.shape}. Did another "
            "program write it? Make it again: dvc repro -f encode."
        )
    return array


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
