"""Alignment candidates: the target tokens that a source token is linked with, most frequent first (§5.4).

Vocabulary selection uses them. Tokens are ids of the encoded corpus, whether pieces or words, so the
alignment is over the same units that the model outputs, and words need not be mapped to pieces.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from convs2s.base.files import atomic_path


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


def read_candidates(path: Path) -> Candidates:
    """Read what `write_candidates` wrote; a FileNotFoundError, or a ValueError if it is damaged."""
    try:
        with np.load(path, allow_pickle=False) as file:
            return Candidates(file["offsets"], file["targets"])
    except FileNotFoundError:
        raise
    except Exception as error:  # numpy passes on errors of zipfile and of the header's parser
        raise ValueError(
            f"{path} is damaged or not a file of candidates ({error}). Make it again: "
            "dvc repro -f candidates."
        ) from error


def has_candidates(path: Path) -> bool:
    """Return whether a file of the stage candidates has any; it has none if selection is unused."""
    with np.load(path, allow_pickle=False) as file:
        return len(file["targets"]) > 0
