"""Models, sentences and trainings of random numbers, in the sizes of a preset."""

import contextlib
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from convs2s.config.model import ModelParams
from convs2s.ids.batching import Batch
from convs2s.ids.encoded import EncodedSentences, write_encoded
from convs2s.ids.vocabulary import EOS, PAD, write_vocabulary
from convs2s.model.initialization import fold_weight_norm
from convs2s.model.seq2seq import Seq2Seq
from convs2s.train.batch_update import queue_update
from convs2s.train.distributed import Workers
from convs2s.train.setup import build_training
from convs2s.train.training import Loaded, Training
from pipelines.preset import preset_params

SENTENCE = 26  # tokens, including EOS


def narrow(model: ModelParams, channels: int | None) -> ModelParams:
    """Return a model with this many channels in all layers; None leaves them unchanged."""
    if channels is None:
        return model
    changes: dict[str, Any] = dict.fromkeys(("embedding_size", "output_embedding_size"), channels)
    for side in ("encoder_widths", "decoder_widths"):
        changes[side] = [channels] * len(getattr(model, side))
    return model.model_copy(update=changes)


def random_model(params: ModelParams, entries: int) -> Seq2Seq:
    """Return a model for inference with random weights and as many entries on both sides, on the CPU."""
    torch.manual_seed(1)
    model = Seq2Seq(params, entries, entries, PAD, dropout=0.0)
    fold_weight_norm(model)
    return model.eval().requires_grad_(False)


def random_ids(
    random: np.random.Generator, entries: int, lengths: NDArray[np.int64]
) -> list[NDArray[np.int64]]:
    """Return sentences of random tokens with these lengths, of which EOS is the last token."""
    return [np.append(random.integers(3, entries, length - 1), EOS) for length in lengths]


def write_random(folder: Path, sizes: tuple[int, int], sentences: int) -> None:
    """Write an encoded corpus of sentences of one length, and vocabularies of these sizes."""
    random = np.random.default_rng(1)
    lengths = np.full(sentences, SENTENCE)
    sides = [EncodedSentences(np.concatenate(random_ids(random, size, lengths)), lengths) for size in sizes]
    for split in ("train", "valid"):
        write_encoded(folder / "encoded" / split, [sides], sizes)
    (folder / "vocabulary").mkdir(parents=True)
    for side, size in zip(("source", "target"), sizes, strict=True):
        words = [(f"w{i}", size - i) for i in range(size - 3)]
        write_vocabulary(folder / "vocabulary" / f"{side}.tsv", words)


@contextlib.contextmanager
def random_training(
    preset: str,
    model: ModelParams,
    sizes: tuple[int, int],
    tokens: int,
    device: torch.device,
    **changes: Any,
) -> Iterator[Training]:
    """Build a training as a preset has it, on one batch of random sentences of one length.

    Args:
        model: the preset's model, or a smaller one.
        sizes: source and target vocabulary entries.
        tokens: of the batch, approximately.
        changes: of the preset's values for training.
    """
    sentences = max(1, tokens // SENTENCE)
    fixed = {
        "batch_by": "sentences", "batch_sentences": sentences, "max_tokens": max(tokens, SENTENCE),
        "selection": None, "workers": 1, "nodes": 1,
    }  # fmt: skip
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_random(folder, sizes, sentences)
        yield build_training(
            model,
            preset_params(preset).train.model_copy(update={**fixed, **changes}),
            seed=1,
            encoded=folder / "encoded",
            vocabulary=folder / "vocabulary",
            candidates=folder / "none",
            workers=Workers(0, 1, device),
        )


def only_batch(training: Training) -> Batch:
    """Return the batch of a random training."""
    (batch,) = training.batching.share(training.begin_pass(), 0)
    return batch


def queue_next(training: Training, losses: nn.Module, loaded: Loaded) -> Tensor:
    """Queue an update as the training's loop does, with the optimizer and learning rate of its preset."""
    queued = queue_update(training, losses, loaded, training.learning_rate())
    training.state.updates += 1
    return queued
