"""Vocabulary selection: the few target types that a batch can need (§5.4; Mi et al., 2016).

The output layer of a batch is limited to the most common target types and the alignment candidates of its
source types; in training also to the batch's own target types, else their likelihood would be nothing
(L'Hostis et al., 2016). The softmax is over the types selected, so what a sentence is translated to may
depend on the sentences that share its batch.
"""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from convs2s.text.alignment.candidates import Candidates, read_candidates
from convs2s.text.vocabulary.vocabulary import SPECIALS


class VocabularySelection:
    """Selects target types for batches, and keeps count of them.

    Args:
        candidates: alignment candidates of source types.
        common: most frequent target types that every batch has; ids are in order of frequency.
        most: candidates taken of each source type, the most frequent ones.
        target_size: types, special ones included.

    Raises:
        ValueError: if a candidate is no target type.
    """

    def __init__(self, candidates: Candidates, common: int, most: int, target_size: int) -> None:
        largest = int(candidates.targets.max(initial=0))
        if largest >= target_size:
            raise ValueError(
                f"the alignment candidates go up to target type {largest:,} but the vocabulary has "
                f"{target_size:,} (3 special ones included). Wanted candidates made of the same vocabulary: "
                "run dvc repro candidates."
            )
        self.candidates = candidates.top(most)
        self.always = len(SPECIALS) + common
        self.target_size = target_size
        self.batches, self.selected = 0, 0

    @classmethod
    def load(cls, path: Path, common: int, most: int, target_size: int) -> "VocabularySelection":
        """Read the candidates from a file.

        Raises:
            FileNotFoundError, ValueError: as `read_candidates`, and as the class does.
        """
        return cls(read_candidates(path), common, most, target_size)

    def types(
        self, source: NDArray[np.integer], target: NDArray[np.integer] | None = None
    ) -> NDArray[np.int64]:
        """Return the ids of a batch's target types, ascending: the special ones first, under their own ids.

        Args:
            source: ids of the batch, of any shape; padding changes nothing.
            target: likewise, in training.
        """
        chosen = np.zeros(self.target_size, np.bool_)
        chosen[: self.always] = True
        chosen[self.candidates.of(np.unique(source))] = True
        if target is not None:
            chosen[target] = True
        types = np.flatnonzero(chosen)
        self.batches, self.selected = self.batches + 1, self.selected + len(types)
        return types

    def report(self) -> str:
        """Return a sentence with the mean number of types selected."""
        mean = self.selected / max(self.batches, 1)
        return (
            f"vocabulary selection: the output layer had {mean:,.0f} of {self.target_size:,} types, "
            f"the mean of {self.batches:,} batches"
        )
