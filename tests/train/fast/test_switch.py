"""A training on the fast paths equals one on the plain paths."""

from pathlib import Path

import pytest
import torch
from torch import Tensor
from torch.testing import assert_close

from convs2s.train.batch_update import make_update
from convs2s.train.fast import linear, weights
from convs2s.train.fast.gpu_layers import GpuLinear
from convs2s.train.fast.linear import FastLinear
from convs2s.train.fast.loss import GpuSummedLoss
from convs2s.train.fast.switch import few_operations, summed_loss
from convs2s.train.loss import SummedLoss
from convs2s.train.training import Training
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
    """Padded sentences, all layers, with and without vocabulary selection (§5.4), in both precisions."""
    selection = {"common": 2, "candidates": 3} if entries else None
    run = tiny_training(tmp_path, dropout=0.0, selection=selection)
    chosen = torch.arange(30) if entries else None
    wanted = losses_and_gradients(run, SummedLoss(run.model, smoothing), chosen, half)
    found = losses_and_gradients(run, summed_loss(run.model, smoothing), chosen, half)
    assert len(found) == 2 + len(list(run.model.parameters()))
    tolerance = 0.05 if half else 1e-4
    for one, other in zip(found, wanted, strict=True):
        assert_close(one, other, atol=tolerance * float(other.abs().max()), rtol=tolerance)


def of_a_gpu(run: Training, smoothing: float) -> SummedLoss:
    """Return the loss on the path for GPUs, which computes the same here."""
    few_operations(run.model)
    return GpuSummedLoss(run.model, smoothing)


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
@pytest.mark.parametrize("on_gpu", [False, True])
def test_an_update_is_that_of_the_plain_model(tmp_path: Path, precision: str, on_gpu: bool) -> None:
    """Two updates test the weights that a batch's parts share, and the gradient that reaches g and v."""
    found = {}
    for path in ("plain", "fast"):
        (tmp_path / path).mkdir()
        run = tiny_training(
            tmp_path / path, dropout=0.0, precision=precision, max_tokens=20, clip_norm=1e9, momentum=1e-9
        )
        loss = SummedLoss(run.model, 0.1)
        if path == "fast":
            loss = of_a_gpu(run, 0.1) if on_gpu else summed_loss(run.model, 0.1)
        before = {name: p.detach().clone() for name, p in run.model.named_parameters()}
        lengths = run.train.source.lengths, run.train.target.lengths
        batches = sorted(run.batching.epoch(*lengths, 1, 0), key=lambda batch: -len(batch.parts))
        assert len(batches[0].parts) > 2
        done = [make_update(run, loss.train(), batch, 1.0) for batch in (batches[0], batches[-1])]
        moved = {name: p.detach() - before[name] for name, p in run.model.named_parameters()}
        found[path] = moved | {"done": torch.tensor([one[:2] for one in done])}
    tolerance = 0.06 if precision == "bfloat16" else 1e-4
    for name, wanted in found["plain"].items():
        assert_close(
            found["fast"][name], wanted, atol=1e-6 + tolerance * float(wanted.abs().max()), rtol=tolerance
        )


@pytest.mark.parametrize("on_gpu", [False, True])
def test_weights_are_made_once_per_update(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, on_gpu: bool
) -> None:
    """This holds for any number of parts in a batch; between updates, no layer keeps weights."""
    run = tiny_training(tmp_path, max_tokens=20)
    loss = of_a_gpu(run, 0.0) if on_gpu else summed_loss(run.model, 0.0)
    layers = [m for m in run.model.modules() if isinstance(m, FastLinear | GpuLinear)]
    calls: list[int] = []
    plain, fast = torch._weight_norm, linear.normalized_weight

    def counted(v: Tensor, g: Tensor, dim: int) -> Tensor:
        calls.append(len(v))
        return plain(v, g, dim)

    def counted_fast(layer: FastLinear, dtype: torch.dtype, multiple: int) -> Tensor:
        calls.append(layer.out_features)
        return fast(layer, dtype, multiple)

    monkeypatch.setattr(torch, "_weight_norm", counted)
    for module in (weights, linear):
        monkeypatch.setattr(module, "normalized_weight", counted_fast)
    lengths = run.train.source.lengths, run.train.target.lengths
    batch = max(run.batching.epoch(*lengths, 1, 0), key=lambda batch: len(batch.parts))
    assert len(batch.parts) > 2
    make_update(run, loss.train(), batch, 0.1)
    assert sum(calls) == sum(layer.out_features for layer in layers)
    assert all(layer.shared is None for layer in layers)


def test_the_choice_changes_no_weight_and_no_name(tmp_path: Path) -> None:
    """Checkpoints and model folders do not depend on the path that wrote them."""
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
