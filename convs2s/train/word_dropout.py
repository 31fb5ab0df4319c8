"""Word dropout: a model must not rely on any single token (Gal & Ghahramani, 2016)."""

import torch
from jaxtyping import Int
from torch import Tensor

from convs2s.text.vocabulary.vocabulary import EOS, UNK


def drop_words(tokens: Int[Tensor, "B N"], probability: float) -> Int[Tensor, "B N"]:
    """Return tokens with each replaced by UNK with this probability, but for PAD and EOS."""
    dropped = torch.rand(tokens.shape, device=tokens.device) < probability
    return tokens.masked_fill(dropped & (tokens > EOS), UNK)
