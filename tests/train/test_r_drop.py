"""R-Drop by its definition."""

from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from torch.testing import assert_close

from convs2s.train.r_drop import RDropLoss
from tests.train.tiny import tiny_training


def test_loss_is_the_mean_of_two_passes_and_their_divergence(tmp_path: Path) -> None:
    """For features of two passes: both directions of Kullback and Leibler's divergence, by PyTorch."""
    run = tiny_training(tmp_path, r_drop=3.0, label_smoothing=0.1)
    losses = run.training_losses()
    assert isinstance(losses, RDropLoss)
    features, weight, bias = torch.randn(8, 5), torch.randn(11, 5), torch.randn(11)
    target = torch.tensor([0, 3, 10, 3])
    logits = F.linear(features, weight, bias)
    one, other = logits.log_softmax(dim=1).chunk(2)
    plain = sum(
        F.cross_entropy(part, target, reduction="sum", label_smoothing=0.1) for part in logits.chunk(2)
    )
    both = sum(F.kl_div(p, q, reduction="sum", log_target=True) for p, q in ((one, other), (other, one)))
    total, likelihood = losses.softmax(features, weight, bias, target.repeat(2), 0.1)
    assert_close(total, plain / 2 + 3.0 / 2 * both / 2)
    assert_close(likelihood, F.cross_entropy(logits, target.repeat(2), reduction="sum") / 2)


def test_without_dropout_both_passes_agree(tmp_path: Path) -> None:
    """The loss is then the plain one; with dropout, they differ."""
    for dropout in (0.0, 0.3):
        run = tiny_training(tmp_path / str(dropout), r_drop=3.0, dropout=dropout)
        inputs = run.inputs(run.train, range(9))
        run.model.train()
        total, likelihood = (loss.detach() for loss in run.training_losses()(*inputs, None))
        plain = run.losses(run.smoothing)(*inputs, None)[0].detach()
        if dropout:
            assert float(total) > float(likelihood) + 0.1
        else:
            assert float(total) == pytest.approx(float(plain), rel=1e-5)
