"""The plain loss of the softmax layer; tests/engine compares that of the fast layers with it."""

import math
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from torch.testing import assert_close

from convs2s.ids.vocabulary import PAD
from convs2s.train.loss import softmax_loss
from tests.train.tiny import tiny_training


def test_equal_scores_cost_the_logarithm_of_the_vocabulary() -> None:
    """By hand: with zero weights every entry has probability 1/V, smoothed or not."""
    inputs = torch.ones(2, 3), torch.zeros(8, 3), torch.zeros(8), torch.tensor([1, 4])
    for smoothing in (0.0, 0.1):
        for loss in softmax_loss(*inputs, smoothing):
            assert_close(loss, torch.tensor(2 * math.log(8)))


def test_smoothing_spreads_probability_over_all_entries() -> None:
    """By the definition: (1 - s) times the likelihood, plus s times the mean over all entries."""
    x, w, b = torch.randn(7, 5), torch.randn(11, 5), torch.randn(11)
    target = torch.tensor([0, 3, 10, 3, 5, 2, 9])
    logs = F.log_softmax(x @ w.t() + b, dim=1)
    expected = -logs[torch.arange(7), target].sum()
    total, likelihood = softmax_loss(x, w, b, target, 0.1)
    assert_close(likelihood, expected)
    assert_close(total, 0.9 * expected - 0.1 * logs.mean(dim=1).sum())


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("selected", [False, True])
def test_padding_that_is_scored_costs_nothing(tmp_path: Path, smoothing: float, selected: bool) -> None:
    """A GPU gets no list of tokens. Loss and gradients are the same, however wide the padding is."""
    run = tiny_training(tmp_path, dropout=0.0, compile=True)
    source, target, real = run.inputs(run.train, [8, 2, 5, 7])
    assert real is not None
    assert len(real) < target.numel()
    entries = target.flatten()[real].unique() if selected else None  # without the padding
    wider = F.pad(target, (0, 3), value=PAD)
    results = []
    for inputs in ((source, target, real), (source, target, None), (source, wider, None)):
        total, likelihood = run.losses(smoothing).train()(*inputs, entries)
        gradients = torch.autograd.grad(total, list(run.model.parameters()))
        results.append([total.detach(), likelihood, *gradients])
    for found in results[1:]:
        assert_close(found, results[0], rtol=1e-6, atol=1e-6)
