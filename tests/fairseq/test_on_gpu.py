"""Tests of golden models that need a GPU; `make gpu-report` runs these."""

import pytest
import torch
from torch import Tensor

from convs2s.config.translate import SearchPlace
from convs2s.ids.vocabulary import PAD
from convs2s.model.seq2seq import Seq2Seq
from convs2s.search.stepwise_model import StepwiseModel
from convs2s.train.loss import SummedLoss, softmax_loss
from tests.decode.parrot import make_search
from tests.golden import NAMES, golden, golden_model, our_ids
from tests.golden.judge import SENTENCES, sources, wanted_hypotheses

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="PyTorch sees no GPU"),
]


def on_gpu(name: str) -> Seq2Seq:
    """Return a golden model of its own on the GPU; the cached one stays on the CPU."""
    model = golden_model.__wrapped__(name)
    return model.to("cuda").requires_grad_(False)


def batch(rows: list[Tensor]) -> Tensor:
    """Return sentences as a batch on the GPU."""
    return torch.nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=PAD).to("cuda")


@pytest.mark.parametrize("search", ["host", "device"])
@pytest.mark.parametrize("beam", [1, 5])
@pytest.mark.parametrize("name", NAMES)
def test_hypotheses_and_scores_are_fairseqs(name: str, beam: int, search: SearchPlace) -> None:
    """fairseq's are of a CPU, so scores differ by the rounding of float32."""
    lines = sources(name)
    limits = [int(1.2 * len(line) + 10) for line in lines]
    found = make_search(beam, place=search, min_length=1).search(
        StepwiseModel(on_gpu(name)), batch(lines), limits
    )
    for hypotheses, wanted in zip(found, wanted_hypotheses(name, beam), strict=True):
        assert [h.tokens for h in hypotheses] == [tokens for tokens, _ in wanted]
        assert [h.score for h in hypotheses] == pytest.approx([score for _, score in wanted], abs=1e-4)


@pytest.mark.parametrize("name", NAMES)
def test_losses_are_fairseqs(name: str) -> None:
    """Of all sentences in one batch, as in a training."""
    targets = [our_ids(golden(name)[f"target_{k}"]) for k in SENTENCES]
    model = on_gpu(name)
    loss, _ = SummedLoss(model, 0.0, softmax_loss)(batch(sources(name)), batch(targets), None, None)
    lengths = [len(target) for target in targets]
    expected = sum(golden(name)["loss_nats_per_token"] * lengths)
    assert float(loss) == pytest.approx(expected, rel=1e-4)
