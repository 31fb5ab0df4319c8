"""A small model with every kind of layer: different widths, a width-1 top, a layer without attention."""

from typing import Any

import torch
from torch import Tensor

from convs2s.config.model import ModelParams
from convs2s.model.seq2seq import Seq2Seq

PAD, EOS = 0, 1
SMALL: dict[str, Any] = {
    "embedding_size": 12,
    "output_embedding_size": 10,
    "encoder_widths": [16, 16, 24],
    "encoder_kernels": [3, 5, 1],
    "decoder_widths": [16, 20, 24],
    "decoder_kernels": [3, 4, 1],
    "attention": [True, False, True],
    "source_positions": True,
    "target_positions": True,
    "max_positions": 32,
    "encoder_grad_scale": "paper",
    "extra_scaling": True,
}
VARIANTS: list[dict[str, Any]] = [
    {},
    {"extra_scaling": False},
    {"attention": [True, True, True]},
    {"attention": [False, False, True]},
    {"source_positions": False, "target_positions": False},
]
"""Variants for which each faster model must equal the plain one."""


def small_params(**changes: Any) -> ModelParams:
    """Return the small architecture, with changes."""
    return ModelParams.model_validate(SMALL | changes)


def small_model(dropout: float = 0.0, **changes: Any) -> Seq2Seq:
    """Build the small model with vocabularies of 40 source and 50 target entries."""
    return Seq2Seq(small_params(**changes), 40, 50, PAD, dropout)


def sentence(length: int, vocabulary: int, start: int = 0) -> Tensor:
    """Return ids by formula, EOS last."""
    return torch.tensor([3 + (7 * i + start) % (vocabulary - 3) for i in range(length - 1)] + [EOS])
