"""Vocabulary selection: the few target tokens that a batch may need (§5.4; Mi et al., 2016).

The output layer of a batch is limited to the most common target tokens and the alignment candidates of its
source tokens. In training, the batch's own target tokens are added, which could otherwise have probability 0
(L'Hostis et al., 2016). The softmax is over the selected tokens, so the translation of a sentence may depend
on the other sentences in its batch.
"""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from convs2s.base.messages import inflect
from convs2s.config.text import SelectionParams
from convs2s.ids.candidates import Candidates, read_candidates
from convs2s.ids.vocabulary import SPECIALS


class VocabularySelection:
    """Selects target tokens for batches, and counts them.

    Args:
        candidates: alignment candidates of source tokens.
        common: number of the most frequent target tokens, which are selected for every batch; ids are in
            order of frequency.
        most: number of candidates to use per source token, the most frequent first.
        target_size: size of the target vocabulary, special entries included.
    """

    def __init__(self, candidates: Candidates, common: int, most: int, target_size: int) -> None:
        self.candidates = candidates.top(most)
        self.always = len(SPECIALS) + common
        self.target_size = target_size
        self.batches, self.selected = 0, 0

    @classmethod
    def read(
        cls, candidates: Path, params: SelectionParams | None, target_size: int
    ) -> "VocabularySelection | None":
        """Return the selection from a file of candidates, which is read only then; None without `params`."""
        if params is None:
            return None
        table = read_candidates(candidates, target_size)
        return cls(table, params.common, params.candidates, target_size)

    def tokens(
        self, source: NDArray[np.integer], target: NDArray[np.integer] | None = None
    ) -> NDArray[np.int64]:
        """Return the ids selected for a batch, ascending; special tokens keep their ids, as they come first.

        Args:
            source: the batch's source ids, of any shape; padding makes no difference.
            target: the batch's target ids, in training.
        """
        chosen = np.zeros(self.target_size, np.bool_)
        chosen[: self.always] = True
        chosen[self.candidates.of(np.unique(source))] = True
        if target is not None:
            chosen[target] = True
        tokens = np.flatnonzero(chosen)
        self.batches += 1
        self.selected += len(tokens)
        return tokens

    def report(self) -> str:
        """Return a sentence with the mean number of tokens selected."""
        mean = self.selected / max(self.batches, 1)
        return (
            f"vocabulary selection: the output layer had {mean:,.0f} of {self.target_size:,} tokens, "
            f"averaged over {inflect(self.batches, 'batch', 'batches')}"
        )
