"""Memory that search and training take on a GPU, counted without one.

    python -m benchmarks.memory [--preset wmt14-en-de-paper] [--tokens 4000 16000] [--members 1 3 8]

The first table has the bytes that a step of search takes for each score, that is, for each hypothesis and
token. The second has what loss and gradients of an update in bfloat16 take at most, with weights and without,
if the loss is computed at once and in parts; its tensors have shapes but no numbers (FakeTensor). What
PyTorch's allocator keeps beyond the tensors is not counted, nor what a kernel takes while it runs, but for
torch.logsumexp.
"""

import argparse
import gc
import weakref
from typing import Any
from unittest import mock

import torch
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from benchmarks.harness import Report, program
from benchmarks.operations import OneDropout
from benchmarks.synthetic import SENTENCE
from convs2s.fairseq.importer import SEARCH
from convs2s.ids.vocabulary import EOS, PAD
from convs2s.model.seq2seq import Seq2Seq
from convs2s.search.beam_search import BeamSearch
from convs2s.search.ensemble import Ensemble
from convs2s.search.search import SearchModel
from convs2s.train.loss import SummedLoss, softmax_loss
from convs2s.train.loss_in_parts import LossInParts
from pipelines.preset import preset_params

GIB = 1 << 30
SENTENCES, BEAM, STEPS = 16, 5, 9
"""Of the search whose bytes are counted; the host looks after the eighth step."""
NARROW = 8
"""Channels of the model that searches, beside whose scores all else is small."""


class LiveBytes(TorchDispatchMode):
    """Counts the bytes of the tensors that were made while it is entered and are still there.

    Attributes:
        now, most: bytes at present, and the most so far.
    """

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.now = self.most = 0
        self.known: weakref.WeakSet[Any] = weakref.WeakSet()

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = function(*args, **(kwargs or {}))
        for tensor in tree_leaves(result):
            if isinstance(tensor, Tensor):
                self._count(tensor.untyped_storage())
        return result

    def _count(self, storage: Any) -> None:
        """Count a tensor's memory until it is freed."""
        if storage not in self.known:
            self.known.add(storage)
            size = storage.nbytes()
            weakref.finalize(storage, self._free, size)
            self.now += size
            self.most = max(self.most, self.now)

    def _free(self, size: int) -> None:
        self.now -= size


class Output(nn.Module):
    """A model that computes scores as `StepwiseModel` does, from an embedding of the last token alone."""

    def __init__(self, entries: int, dtype: torch.dtype) -> None:
        super().__init__()
        self.max_source_tokens = self.max_target_tokens = None
        self.embedding = nn.Embedding(entries, NARROW, dtype=dtype)
        self.layer = nn.Linear(NARROW, entries, dtype=dtype)
        self.layer.bias.data[EOS] = -1e4  # no hypothesis ends before it must
        self.requires_grad_(False)

    def restrict(self, tokens: Tensor) -> "Output":
        raise NotImplementedError

    def encode(self, source: Tensor) -> "Rows":
        return Rows(source)

    def start(self, rows: int) -> "Rows":
        return Rows(torch.zeros(rows))

    def step(self, tokens: Tensor, memory: "Rows", state: "Rows") -> tuple[Tensor, Tensor, "Rows"]:
        beams = len(tokens) // len(memory.rows)
        attention = torch.ones(memory.rows.shape).repeat_interleave(beams, dim=0)
        return self.layer(self.embedding(tokens)).float(), attention, state


class Rows:
    """Rows as memory or state."""

    def __init__(self, rows: Tensor) -> None:
        self.rows = rows

    def select(self, rows: Tensor) -> "Rows":
        return Rows(self.rows[rows])


def log_normalizer(logits: Tensor) -> Tensor:
    """Compute torch.logsumexp by the operations that it consists of on a GPU."""
    largest = logits.amax(dim=1, keepdim=True)
    return (logits - largest).exp_().sum(dim=1).log_().add_(largest.squeeze(1))


def bytes_per_score(members: int, entries: int, dtype: torch.dtype) -> float:
    """Return the most bytes that a search takes for each hypothesis and token at once."""
    models: list[SearchModel] = [Output(entries, dtype) for _ in range(members)]
    model = models[0] if members == 1 else Ensemble(models)
    source = torch.tensor([[3, EOS]] * SENTENCES)
    params = SEARCH.model_copy(update={"beam_size": BEAM, "min_length": STEPS - 1})
    on_a_gpu = mock.patch("convs2s.search.token_scores.log_normalizer", log_normalizer)
    with on_a_gpu, LiveBytes() as memory:
        BeamSearch(params, False, "device").search(model, source, [STEPS - 1] * SENTENCES)
    return float(memory.most / (SENTENCES * BEAM * entries))


def bytes_of_update(preset: str, entries: int, tokens: int, loss: Any) -> tuple[int, int]:
    """Return the bytes of weights and momentum, and the most with what loss and gradients take."""
    with FakeTensorMode(), LiveBytes() as memory, OneDropout():
        model = Seq2Seq(preset_params(preset).model, entries, entries, PAD, dropout=0.1).train()
        momentum = [torch.zeros_like(weight) for weight in model.parameters()]
        gc.collect()
        weights = memory.now
        ids = torch.full((tokens // SENTENCE, SENTENCE), 5)
        with torch.autocast("cpu", torch.bfloat16):
            total, _ = SummedLoss(model, 0.0, loss).train()(ids, ids, None, None)
        total.backward()
        assert len(momentum) == len(list(model.parameters()))
    return weights, memory.most


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the sizes."""
    parser.add_argument("--preset", default="wmt14-en-de-paper")
    parser.add_argument("--entries", type=int, default=40_000, help="of the vocabularies")
    parser.add_argument("--tokens", type=int, nargs="+", default=[4000, 16_000], help="of an update")
    parser.add_argument("--members", type=int, nargs="+", default=[1, 3, 8], help="of an ensemble")


def measure(options: argparse.Namespace, report: Report) -> None:
    """Count both."""
    report.table(("members", "precision", "bytes a score"), "A step of search")
    for members in options.members:
        for dtype in (torch.float32, torch.bfloat16):
            found = bytes_per_score(members, options.entries, dtype)
            report.add(members=members, precision=str(dtype).removeprefix("torch."), bytes_a_score=found)
    columns = ("tokens", "loss", "GiB", "without weights and momentum, GiB")
    report.table(columns, f"An update of {options.preset}, {options.entries:,} entries, bfloat16")
    for tokens in options.tokens:
        for name, loss in {"at once": softmax_loss, "in parts": LossInParts()}.items():
            weights, most = bytes_of_update(options.preset, options.entries, tokens, loss)
            report.add(tokens=tokens, loss=name, gib=most / GIB, gib_of_update=(most - weights) / GIB)


main = program(__doc__, add_options, measure)

if __name__ == "__main__":
    main()
