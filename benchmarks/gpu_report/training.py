"""Trainings of random text for the report."""

import contextlib
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from benchmarks.train_step import SENTENCE, narrow, write_random
from convs2s.config.model import ModelParams
from convs2s.train.distributed import Workers
from convs2s.train.setup import build_training
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
    preset: str,
    tokens: int,
    device: torch.device,
    toy: bool,
    lengths: Sequence[NDArray[np.int64]] | None = None,
    **changes: Any,
) -> Iterator[Training]:
    """Build the training of a preset's model on random text, with a GPU's layers.

    Args:
        tokens: in a batch, at most.
        lengths: of source and target sentences; None for a batch of sentences of one length.
        changes: of the preset's values for training.
    """
    model, entries = model_params(preset, toy)
    changed = {
        "precision": "bfloat16", "batch_by": "tokens", "batch_sentences": tokens, "max_tokens": tokens,
        "selection": None, "compile": True, **changes,
    }  # fmt: skip
    lengths = lengths or [np.full(max(1, tokens // SENTENCE), SENTENCE)] * 2
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_random(folder, (entries, entries), lengths)
        training = build_training(
            model,
            preset_params(preset).train.model_copy(update=changed),
            seed=1,
            encoded=folder / "encoded",
            vocabulary=folder / "vocabulary",
            candidates=folder / "none",
            workers=Workers(0, 1, device),
        )
        training.lists_tokens = False  # as on a GPU
        yield training


def first_batch(training: Training) -> Loaded:
    """Return the first batch of a pass, on the device."""
    return training.load(next(training.batching.share(training.begin_pass(), 0)))
