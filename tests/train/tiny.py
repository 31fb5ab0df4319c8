"""A tiny encoded corpus, its parameters and its training: sentences by formula, trained in a second."""

import functools
from pathlib import Path
from typing import Any

import numpy as np
import torch
from ruamel.yaml import YAML

from convs2s.config.params import Params
from convs2s.ids.batching import Batch
from convs2s.ids.candidates import Candidates, write_candidates
from convs2s.ids.encoded import EncodedSentences, write_encoded
from convs2s.ids.vocabulary import EOS, write_vocabulary
from convs2s.train.distributed import Workers
from convs2s.train.setup import build_training
from convs2s.train.training import Training
from tests.presets import params_of

ROOT = Path(__file__).parent.parent.parent
VOCABULARY = 30
ALONE = Workers(0, 1, torch.device("cpu"))
PATHS = Path("encoded"), Path("vocabulary"), Path("candidates"), Path("work"), Path("out"), Path("cost")


def sentences(count: int, start: int) -> EncodedSentences:
    """Return sentences of 2 to 9 tokens, a simple function of their numbers."""
    rows = [
        [3 + (7 * (i + start) + 3 * k * k) % (VOCABULARY - 3) for k in range(1 + (5 * (i + start)) % 8)]
        + [EOS]
        for i in range(count)
    ]
    return EncodedSentences(np.array([t for row in rows for t in row]), np.array([len(row) for row in rows]))


def write_tiny(folder: Path, train: int = 150, valid: int = 20) -> None:
    """Write folder/{encoded,vocabulary,candidates}; a sentence is its own translation."""
    for split, count, start in (("train", train, 0), ("valid", valid, 1000)):
        side = sentences(count, start)
        write_encoded(folder / "encoded" / split, [[side, side]], (VOCABULARY, VOCABULARY))
    for side_name in ("source", "target"):
        (folder / "vocabulary").mkdir(exist_ok=True)
        write_vocabulary(
            folder / "vocabulary" / f"{side_name}.tsv", [(f"w{i}", 99 - i) for i in range(VOCABULARY - 3)]
        )
    own = Candidates(np.maximum(np.arange(VOCABULARY + 1) - 3, 0), np.arange(3, VOCABULARY, dtype=np.int32))
    write_candidates(folder / "candidates" / "candidates.npz", own)


@functools.cache
def default_params() -> Params:
    """Return the default preset."""
    return params_of("tatoeba-en-de")


def tiny_params(folder: Path, layers: int = 2, **train: Any) -> Params:
    """Write folder/params.yaml: a tiny model, trained as in the paper but for what is given; return it.

    Args:
        layers: of the encoder, and of the decoder; one suffices if only the course of a training matters.
        train: values of the sections train and run.
    """
    content = default_params().model_dump()
    content["model"].update(
        embedding_size=16,
        output_embedding_size=16,
        encoder_widths=[16] * layers,
        encoder_kernels=[3] * layers,
        decoder_widths=[16] * layers,
        decoder_kernels=[3] * layers,
        attention=[True] * layers,
        max_positions=32,
    )
    content["train"] = params_of("wmt14-en-de-paper").train.model_dump() | {
        "dropout": 0.1, "label_smoothing": 0.1, "batch_sentences": 8, "max_tokens": 60, "momentum": 0.95,
        "max_epochs": 3, "precision": "float32",
    }  # fmt: skip
    content["candidates"]["per_source"] = 1000
    content["evaluate"]["heat_maps"] = 1
    content["run"]["checkpoint_updates"] = 5
    for name, value in train.items():
        content["run" if name in content["run"] else "train"][name] = value
    content["translate"]["selection"] = content["train"]["selection"]
    with (folder / "params.yaml").open("w", encoding="utf-8") as stream:
        YAML(typ="safe").dump(content, stream)
    return Params.model_validate(content)


def tiny_training(
    folder: Path, pairs: int = 150, place: Workers = ALONE, layers: int = 2, **train: Any
) -> Training:
    """Build a training on the tiny corpus, with these changes to `train` and `run`, as one of the workers."""
    write_tiny(folder, pairs)
    params = tiny_params(folder, layers, **train)
    paths = folder / "encoded", folder / "vocabulary", folder / "candidates" / "candidates.npz"
    return build_training(params.model, params.train, 1, *paths, place)


def on_a_gpu_path(training: Training) -> Training:
    """Make a training on a CPU, built with `compile=True`, compute what one on a GPU does."""
    training.lists_tokens = False
    return training


def batches(training: Training) -> list[Batch]:
    """Return the batches of the first pass, first the one with the most parts."""
    found = training.batching.share(training.begin_pass(), training.workers.rank)
    return sorted(found, key=lambda batch: -len(batch.parts))


def weights(training: Training) -> torch.Tensor:
    """Return all weights of a model as one vector."""
    return torch.cat([p.detach().flatten() for p in training.model.parameters()])
