"""Build a training from its parameters: model, optimizer and data, before the first update."""

import contextlib
import ctypes
import os
import warnings
from pathlib import Path

import torch

from convs2s.base.files import SIDES
from convs2s.config.model import ModelParams
from convs2s.config.section import path_or_none
from convs2s.config.train import TrainParams
from convs2s.ids.batching import Batching
from convs2s.ids.selection import VocabularySelection
from convs2s.ids.vocabulary import PAD, read_vocabulary
from convs2s.model.precision import choose_precision
from convs2s.model.seq2seq import Seq2Seq
from convs2s.model.storage import load_start
from convs2s.train.annealing import Annealing
from convs2s.train.choose_layers import choose_layers
from convs2s.train.distributed import Workers
from convs2s.train.loss import softmax_loss
from convs2s.train.optimizer import Adam, Nesterov, Optimizer
from convs2s.train.recorded_updates import RecordedUpdates
from convs2s.train.training import Pairs, State, Training

M_TRIM_THRESHOLD, M_TOP_PAD, M_MMAP_MAX = -1, -2, -4  # from glibc's malloc.h


def build_training(
    model_params: ModelParams,
    params: TrainParams,
    seed: int,
    encoded: Path,
    vocabulary: Path,
    candidates: Path,
    workers: Workers,
) -> Training:
    """Build a training; its initial weights depend only on the seed, or are those of `params.start_from`.

    Args:
        encoded: folder with train/ and valid/, as written by the stage encode.
        vocabulary: folder with source.tsv and target.tsv.
        candidates: file candidates.npz, read only with vocabulary selection.

    Raises:
        ValueError: if a sentence is longer than the position table.
        FileNotFoundError, ValueError: as `load_start`, if training starts from a model.
    """
    source_size, target_size = (len(read_vocabulary(vocabulary / f"{side}.tsv")) for side in SIDES)
    train_pairs, valid_pairs = (Pairs.open(encoded / split) for split in ("train", "valid"))
    if workers.device.type == "cuda":
        make_gpus_deterministic()
    torch.manual_seed(seed)
    model = build_model(model_params, params, source_size, target_size).to(workers.device)
    start = path_or_none(params.start_from)
    if start is not None:
        load_start(start, model)
    for name, pairs in (("train", train_pairs), ("valid", valid_pairs)):
        check_lengths(encoded / name, pairs, model)
    training = Training(
        model=model,
        optimizer=build_optimizer(params, model),
        train=train_pairs,
        valid=valid_pairs,
        batching=Batching(
            by_sentences=params.batch_by == "sentences",
            sentences=params.batch_sentences,
            max_tokens=params.max_tokens,
            workers=params.workers * params.nodes,
        ),
        annealing=Annealing(params),
        workers=workers,
        params=params,
        seed=seed,
        softmax=softmax_loss,
        lists_tokens=workers.device.type == "cpu",
        state=State(choose_precision(params.precision, workers.device).precision),
        selection=VocabularySelection.read(candidates, params.selection, target_size),
        recorded=RecordedUpdates() if params.graphs and workers.device.type == "cuda" else None,
    )
    if params.graphs and training.recorded is None:
        warnings.warn("train.graphs: without a GPU, updates are not recorded.", stacklevel=2)
    choose_layers(training)
    return training


def build_model(
    model_params: ModelParams, params: TrainParams, source_size: int, target_size: int
) -> Seq2Seq:
    """Return a model with random weights; its sizes are those of the vocabularies."""
    plain_output = params.selection is not None or params.tied_embeddings
    model = Seq2Seq(model_params, source_size, target_size, PAD, params.dropout, plain_output)
    if params.tied_embeddings:
        model.output_layer.weight = model.target_embedding.words.weight
    return model


def build_optimizer(params: TrainParams, model: Seq2Seq) -> Optimizer:
    """Return the optimizer of a model's parameters."""
    if params.optimizer == "adam":
        return Adam(model.parameters())
    return Nesterov(model.parameters(), params.momentum)


def make_gpus_deterministic() -> None:
    """Make GPU results reproducible, and compute float32 in full precision."""
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    torch.use_deterministic_algorithms(True, warn_only=True)
    # By default this also fills new memory, in an extra operation; nothing here reads uninitialized memory.
    torch.utils.deterministic.fill_uninitialized_memory = False  # type: ignore[attr-defined]
    torch.set_float32_matmul_precision("highest")
    # By default, convolutions round float32 inputs to the 10 bits of TF32, unlike matrix products.
    torch.backends.cudnn.allow_tf32 = False


def keep_freed_memory() -> None:
    """Make glibc keep freed memory: new pages cost up to a fifth of a training step on the CPU."""
    with contextlib.suppress(OSError, AttributeError):  # another C library
        mallopt = ctypes.CDLL("libc.so.6").mallopt
        for option, value in {M_MMAP_MAX: 0, M_TRIM_THRESHOLD: 1 << 30, M_TOP_PAD: 64 << 20}.items():
            mallopt(option, value)


def check_lengths(folder: Path, pairs: Pairs, model: Seq2Seq) -> None:
    """Raise ValueError unless every sentence fits the position tables."""
    for side, corpus, limit in (
        ("source", pairs.source, model.max_source_tokens),
        ("target", pairs.target, model.max_target_tokens),
    ):
        lengths = corpus.lengths
        longest = int(lengths.argmax())
        if limit is not None and lengths[longest] > limit:
            raise ValueError(
                f"{folder}, {side} sentence {longest + 1:,} has {lengths[longest]:,} tokens including "
                f"EOS, but the position table holds {limit:,}. Raise model.max_positions, or lower "
                "filter.max_words."
            )
