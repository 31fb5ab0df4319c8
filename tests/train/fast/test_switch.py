"""A training on the fast paths is one on the plain paths."""

from pathlib import Path

import pytest
import torch
from torch import Tensor
from torch.testing import assert_close

from convs2s.train.fast.switch import summed_loss
from convs2s.train.loop import Training
from convs2s.train.loss import SummedLoss
from tests.train.tiny import tiny_training


def losses_and_gradients(run: Training, loss: SummedLoss, entries: Tensor | None, half: bool) -> list[Tensor]:
    """Return the losses of a batch and every parameter's gradient."""
    run.model.train().zero_grad()
    with torch.autocast("cpu", torch.bfloat16, enabled=half):
        total, likelihood = loss.train()(*run.inputs(run.train, range(9)), entries)
    (total / 7).backward()
    gradients = [p.grad for p in run.model.parameters()]
    assert all(gradient is not None for gradient in gradients)
    return [total.detach(), likelihood, *(g.clone() for g in gradients if g is not None)]


@pytest.mark.parametrize("half", [False, True])
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("entries", [None, 17])
def test_losses_and_gradients_are_those_of_the_plain_model(
    tmp_path: Path, half: bool, smoothing: float, entries: int | None
) -> None:
    """Padded sentences, all layers; with and without vocabulary selection (§5.4), in both precisions."""
    selection = {"common": 2, "candidates": 3} if entries else None
    run = tiny_training(tmp_path, dropout=0.0, selection=selection)
    chosen = torch.arange(30) if entries else None
    wanted = losses_and_gradients(run, SummedLoss(run.model, smoothing), chosen, half)
    found = losses_and_gradients(run, summed_loss(run.model, smoothing), chosen, half)
    assert len(found) == 2 + len(list(run.model.parameters()))
    tolerance = 0.05 if half else 1e-4
    for one, other in zip(found, wanted, strict=True):
        assert_close(one, other, atol=tolerance * float(other.abs().max()), rtol=tolerance)


def test_the_choice_changes_no_weight_and_no_name(tmp_path: Path) -> None:
    """Checkpoints and model folders do not know which path made them."""
    run = tiny_training(tmp_path)
    before = {name: tensor.clone() for name, tensor in run.model.state_dict().items()}
    fast = summed_loss(run.model, 0.0)
    assert type(fast) is not SummedLoss
    assert summed_loss(run.model, 0.0).model is run.model
    after = run.model.state_dict()
    assert list(before) == list(after)
    assert all(torch.equal(before[name], after[name]) for name in before)


def test_a_nan_reaches_loss_and_gradient(tmp_path: Path) -> None:
    """Divergence must be seen: no loop may turn NaN into a number."""
    run = tiny_training(tmp_path, dropout=0.1)
    run.model.decoder.output_map.bias.data[0] = torch.nan
    found = losses_and_gradients(run, summed_loss(run.model, 0.0), None, half=True)
    assert found[0].isnan()
    assert any(gradient.isnan().any() for gradient in found[2:])
