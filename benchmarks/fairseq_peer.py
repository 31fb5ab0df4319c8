"""fairseq for comparison: updates on the same batches, and translation; needs fairseq.

As published, fairseq 0.12.2 (commit 3d262bb) cannot be imported on Python 3.11. These changes, none of which
affects a number, make it work: mutable defaults of dataclasses become `field(default_factory=...)`, `np.int`
and `np.float` become `int` and `float`. It also needs omegaconf 2.3, hydra-core 1.3.2, bitarray, cffi, and
its own extensions `data_utils_fast` and `token_block_utils_fast`, built in place.
"""

import importlib
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

from convs2s.config.model import ModelParams
from convs2s.decode.batches import batches
from convs2s.ids.batching import Batch
from convs2s.ids.vocabulary import EOS, PAD
from convs2s.train.optimizer import BETAS, EPSILON, Nesterov
from convs2s.train.training import Training

# Importing fairseq sets the root logger to DEBUG, with which numba logs each step and compiles for minutes.
logging.getLogger("numba").setLevel(logging.WARNING)


@dataclass
class FairseqVariant:
    """fairseq's training of a model, on the same batches as ours."""

    training: Training
    model: Any
    optimizer: torch.optim.Optimizer
    batch: Batch

    def update(self) -> int:
        """Make an update as fairseq's trainer does; return its target tokens."""
        self.model.train()
        batch = self.batch
        for part in batch.parts:
            source, target, _ = self.training.inputs(self.training.train, part)
            previous = torch.cat([target.new_full((len(target), 1), EOS), target[:, :-1]], dim=1)
            logits = self.model(source, (source != PAD).sum(dim=1), previous)
            logs: torch.Tensor = self.model.get_normalized_probs(logits, log_probs=True)
            loss = F.nll_loss(logs.flatten(0, 1), target.flatten(), ignore_index=PAD, reduction="sum")
            loss.backward()
        gradients = [p.grad for p in self.model.parameters() if p.grad is not None]
        torch._foreach_mul_(gradients, 1.0 / batch.target_tokens)
        clip = importlib.import_module("fairseq.utils").clip_grad_norm_
        float(clip(self.model.parameters(), self.training.params.clip_norm))
        for group in self.optimizer.param_groups:
            group["lr"] = self.training.learning_rate()
        self.optimizer.step()
        self.optimizer.zero_grad()
        self.training.state.updates += 1
        return batch.target_tokens


def fairseq_variant(
    training: Training, params: ModelParams, sizes: tuple[int, int], batch: Batch
) -> FairseqVariant:
    """Return fairseq's training of a model as large as ours, in float32, on the data of our training."""
    model = fairseq_model(params, sizes, training.model.dropout.p).to(training.workers.device)
    rate = training.learning_rate()
    if isinstance(training.optimizer, Nesterov):
        nesterov = importlib.import_module("fairseq.optim.nag").NAG
        optimizer = nesterov(model.parameters(), lr=rate, momentum=training.optimizer.momentum)
    else:
        adam = importlib.import_module("fairseq.optim.adam").Adam
        optimizer = adam(model.parameters(), lr=rate, betas=BETAS, eps=EPSILON)
    return FairseqVariant(training, model, optimizer, batch)


def fairseq_model(params: ModelParams, sizes: tuple[int, int], dropout: float) -> nn.Module:
    """Return fairseq's `fconv` of these sizes; entries 0 to 2 are special in both."""
    fconv = importlib.import_module("fairseq.models.fconv")
    encoder = fconv.FConvEncoder(
        Entries(sizes[0]),
        embed_dim=params.embedding_size,
        embed_dict=None,
        max_positions=params.max_positions - 1,
        convolutions=tuple(zip(params.encoder_widths, params.encoder_kernels, strict=True)),
        dropout=dropout,
    )
    decoder = fconv.FConvDecoder(
        Entries(sizes[1]),
        embed_dim=params.embedding_size,
        embed_dict=None,
        out_embed_dim=params.output_embedding_size,
        max_positions=params.max_positions - 1,
        convolutions=tuple(zip(params.decoder_widths, params.decoder_kernels, strict=True)),
        attention=list(params.attention),
        dropout=dropout,
    )
    model: nn.Module = fconv.FConvModel(encoder, decoder)
    return model


@dataclass(frozen=True)
class Entries:
    """The dictionary interface that fairseq's model needs."""

    count: int

    def __len__(self) -> int:
        return self.count

    def pad(self) -> int:
        """Return the id of padding."""
        return PAD


@dataclass
class FairseqTranslator:
    """fairseq's search with the model of a checkpoint, set up as in its command `generate`."""

    generator: Any
    source: Any
    target: Any
    batch_sentences: int

    def translate(self, texts: Sequence[str]) -> list[str]:
        """Return each text's best hypothesis, as space-separated tokens like the texts; EOS is last."""
        rows = [self.source.encode_line(text, add_if_not_exist=False).long() for text in texts]
        hypotheses = [""] * len(texts)
        for batch in batches([len(row) for row in rows], self.batch_sentences):
            lengths = torch.tensor([len(rows[i]) for i in batch])
            tokens = torch.full((len(batch), int(lengths.max())), self.source.pad())
            for place, i in enumerate(batch):
                tokens[place, -len(rows[i]) :] = rows[i]  # fairseq pads on the left
            inputs = {"src_tokens": tokens, "src_lengths": lengths}
            ranked = self.generator.generate(self.generator.model.models, {"net_input": inputs})
            for i, (best, *_) in zip(batch, ranked, strict=True):
                hypotheses[i] = " ".join(self.target[int(token)] for token in best["tokens"])
        return hypotheses


def fairseq_translator(
    checkpoint: Path, dictionaries: Sequence[Path], beam_size: int, batch_sentences: int
) -> FairseqTranslator:
    """Return fairseq's search, hypotheses limited to 1.2 S + 10 tokens as in the authors' commands.

    Code in the checkpoint is executed. The dictionaries are those of the source and the target.
    """
    load = importlib.import_module("fairseq.data").Dictionary.load
    source, target = (load(str(path)) for path in dictionaries)
    state = torch.load(checkpoint, map_location="cpu", weights_only=False)
    arguments = state.get("args") or state["cfg"]["model"]
    task = SimpleNamespace(source_dictionary=source, target_dictionary=target)
    model = importlib.import_module("fairseq.models.fconv").FConvModel.build_model(arguments, task)
    model.load_state_dict(state["model"])
    model.make_generation_fast_()  # folds weight norm
    search = importlib.import_module("fairseq.sequence_generator").SequenceGenerator
    generator = search([model], target, beam_size=beam_size, max_len_a=1.2, max_len_b=10)
    return FairseqTranslator(generator.eval(), source, target, batch_sentences)
