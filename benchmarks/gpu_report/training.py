"""Trainings of random text for the report."""

import contextlib
from collections.abc import Iterator
from typing import Any

import torch

from benchmarks.synthetic import narrow, only_batch, random_training
from convs2s.config.model import ModelParams
from convs2s.train.training import Loaded, Training
from pipelines.preset import preset_params

TOY_ENTRIES = 40


def model_params(preset: str, toy: bool) -> tuple[ModelParams, int]:
    """Return a preset's model and the size of its target vocabulary; at toy size, one narrow block a side."""
    params = preset_params(preset)
    if not toy:
        return params.model, params.vocabulary.target_size
    first = {
        name: getattr(params.model, name)[:1]
        for name in ("encoder_widths", "encoder_kernels", "decoder_widths", "decoder_kernels", "attention")
    }
    return narrow(params.model.model_copy(update=first), 8), TOY_ENTRIES


@contextlib.contextmanager
def build_random(
    preset: str, tokens: int, device: torch.device, toy: bool, **changes: Any
) -> Iterator[Training]:
    """Build the training of a preset's model on a random batch, with a GPU's layers, on a CPU, too.

    Args:
        tokens: in the batch, approximately.
        changes: of the preset's values for training.
    """
    model, entries = model_params(preset, toy)
    changes = {"precision": "bfloat16", "compile": True, **changes}
    with random_training(preset, model, (entries, entries), tokens, device, **changes) as training:
        training.lists_tokens = False
        yield training


def load_batch(training: Training) -> Loaded:
    """Return the batch of a random training, on the device."""
    return training.load(only_batch(training))
