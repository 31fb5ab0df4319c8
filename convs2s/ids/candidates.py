"""Alignment candidates: the target tokens that a source token is linked with, most frequent first (§5.4).

Vocabulary selection uses them. Tokens are ids of the encoded corpus, whether pieces or words, so the
alignment is over the same units that the model outputs, and words need not be mapped to pieces.
"""

import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from convs2s.base.files import atomic_path
from convs2s.base.messages import is_out_of_memory


@dataclass(frozen=True)
class Candidates:
    """Source token s has the candidates targets[offsets[s] : offsets[s + 1]]; higher ids have none."""

    offsets: NDArray[np.int64]
    targets: NDArray[np.int32]

    def top(self, most: int) -> "Candidates":
        """Return the first `most` candidates of each source token."""
        lengths = np.diff(self.offsets)
        ranks = np.arange(len(self.targets)) - np.repeat(self.offsets[:-1], lengths)
        offsets = np.insert(np.cumsum(np.minimum(lengths, most)), 0, 0)
        return Candidates(offsets, self.targets[ranks < most])

    def of(self, source: NDArray[np.integer]) -> NDArray[np.int32]:
        """Return the candidates of the given source tokens, concatenated."""
        linked = source[source < len(self.offsets) - 1]
        starts, lengths = self.offsets[linked], np.diff(self.offsets)[linked]
        before = np.cumsum(lengths) - lengths  # candidates of the tokens before
        places = np.repeat(starts - before, lengths) + np.arange(lengths.sum())
        candidates: NDArray[np.int32] = self.targets[places]
        return candidates


NO_CANDIDATES = Candidates(np.zeros(1, np.int64), np.zeros(0, np.int32))


def write_candidates(path: Path, candidates: Candidates) -> None:
    """Write candidates as an .npz file, whole or not at all."""
    with atomic_path(path) as temporary, temporary.open("wb") as stream:
        np.savez(stream, offsets=candidates.offsets, targets=candidates.targets)


def read_candidates(path: Path, target_size: int | None = None) -> Candidates:
    """Read what `write_candidates` wrote; a FileNotFoundError, or a ValueError if it is damaged.

    Sizes that the file claims are compared with its own before anything is read.

    Args:
        target_size: entries of the target vocabulary, of which all candidates must be; None: any ids.
    """
    if not path.is_file():
        raise FileNotFoundError(f"{path} does not exist. Expected candidates: run dvc repro candidates.")
    try:
        with zipfile.ZipFile(path) as archive:
            if sorted(archive.namelist()) != ["offsets.npy", "targets.npy"]:
                raise ValueError("expected the arrays offsets and targets, and nothing else")
            most = path.stat().st_size
            offsets = read_array(archive, "offsets.npy", np.dtype(np.int64), most)
            targets = read_array(archive, "targets.npy", np.dtype(np.int32), most)
    except Exception as error:  # numpy passes on errors of zipfile and of the header's parser
        if is_out_of_memory(error):
            raise
        raise ValueError(
            f"{path} is damaged or not a file of candidates ({error}). Make it again: "
            "dvc repro -f candidates."
        ) from error
    rises = len(offsets) and offsets[0] == 0 and bool(np.all(offsets[1:] >= offsets[:-1]))
    if not (rises and offsets[-1] == len(targets)):
        raise ValueError(
            f"{path}: expected offsets that rise from 0 to the {len(targets):,} targets, found "
            f"{np.array2string(offsets, threshold=4)}. Make it again: dvc repro -f candidates."
        )
    most_id = np.iinfo(np.int32).max if target_size is None else target_size - 1
    if len(targets) and not 0 <= targets.min() <= targets.max() <= most_id:
        raise ValueError(
            f"{path}: expected target entries from 0 to {most_id:,}, found {targets.min():,} to "
            f"{targets.max():,}. Is it of another model? Make it for this one: convs2s candidates."
        )
    return Candidates(offsets, targets)


def read_array(archive: zipfile.ZipFile, name: str, dtype: np.dtype[Any], most: int) -> NDArray[Any]:
    """Return an array of an .npz file of at most `most` bytes, stored as `write_candidates` does."""
    member = archive.getinfo(name)
    if member.compress_type != zipfile.ZIP_STORED or not member.file_size == member.compress_size <= most:
        raise ValueError(f"expected {name} uncompressed and within the file")
    with archive.open(member) as stream:
        npy.read_magic(stream)
        shape, _, stored = npy.read_array_header_1_0(stream)
        content = stream.read()
    if stored != dtype or shape != (len(content) // dtype.itemsize,):
        raise ValueError(
            f"expected {name} as a list of {dtype} that fills its place, found {stored}, {shape}"
        )
    return np.frombuffer(content, dtype)


def has_candidates(path: Path) -> bool:
    """Return whether a file of the stage candidates has any; it has none if selection is unused."""
    return len(read_candidates(path).targets) > 0
