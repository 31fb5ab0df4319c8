"""The sentences of a batch that are still being translated, by a search or by sampling."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float, Int, Int64
from numpy.typing import NDArray
from torch import Tensor

from convs2s.text.vocabulary.vocabulary import EOS, PAD


class LiveBatch:
    """The source data that the steps need, for the unfinished sentences.

    Args:
        memory: the encoder output of all sentences.
        source: each row ends with EOS, followed by padding.
        max_lengths: for each sentence, the most tokens in a hypothesis, EOS excluded.
        prefixes: for each sentence, the tokens that its hypotheses begin with. Empty: no sentence has one.

    Attributes:
        alive: the indices of the unfinished sentences in the whole batch.
    """

    def __init__(
        self,
        memory: Any,
        source: Int64[Tensor, "B S"],
        max_lengths: Sequence[int],
        prefixes: Sequence[Sequence[int]],
    ) -> None:
        self.memory, self.prefixes = memory, prefixes
        self.limits = np.asarray(max_lengths, dtype=np.int64)
        self.alive: NDArray[np.int64] = np.arange(len(source))
        self.lengths = (source != PAD).sum(dim=1)
        positions = torch.arange(source.shape[1], device=source.device)
        self.words = (positions < self.lengths[:, None] - 1).float()  # (B, S): 0 at EOS and padding

    def forced(self, step: int) -> NDArray[np.bool_]:
        """Return which sentences must end at this step."""
        return self.limits[self.alive] <= step

    def only(self, step: int) -> NDArray[np.int64]:
        """Return the token that each sentence must take: the next one of its prefix, or EOS; else -1."""
        only = np.where(self.forced(step), EOS, -1)
        for row, i in enumerate(self.alive if self.prefixes else ()):
            if step < len(self.prefixes[i]):
                only[row] = self.prefixes[i][step]
        return only

    def attended(self, attention: Float[Tensor, "R S"]) -> tuple[Int[Tensor, "R"], Bool[Tensor, "R"]]:
        """Return the most attended position except EOS (T34), and whether EOS gets even more attention.

        Args:
            attention: the same number of rows for each sentence.
        """
        grid = attention.view(len(self.words), -1, attention.shape[1])  # (B, H, S)
        most, sources = (grid * self.words[:, None]).max(dim=2)
        ends = (self.lengths - 1)[:, None, None].expand(-1, grid.shape[1], 1)
        return sources.flatten(), (grid.gather(2, ends).squeeze(2) > most).flatten()

    def keep(self, going: NDArray[np.int64]) -> None:
        """Drop all sentences except these, given by their current row."""
        index = torch.as_tensor(going, device=self.lengths.device)
        self.memory, self.words = self.memory.select(index), self.words[index]
        self.lengths, self.alive = self.lengths[index], self.alive[going]
