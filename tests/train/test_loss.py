import math
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch.testing import assert_close
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from convs2s.train import loss as loss_module
from convs2s.train.loss import SummedLoss, negative_log_likelihood
from tests.train.tiny import tiny_training


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("rows_at_once", [1, 3, 100])
def test_loss_and_gradients_equal_cross_entropy(
    smoothing: float, rows_at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It equals cross-entropy on all scores at once, however many rows are computed together."""
    monkeypatch.setattr(loss_module, "SCORES_AT_ONCE", rows_at_once * 11)
    x, w, b = (torch.randn(*s, dtype=torch.float64, requires_grad=True) for s in ((7, 5), (11, 5), (11,)))
    target = torch.tensor([0, 3, 10, 3, 5, 2, 9])
    plain = F.cross_entropy(F.linear(x, w, b), target, reduction="sum", label_smoothing=smoothing)
    wanted = torch.autograd.grad(3.0 * plain, (x, w, b))
    x32, w32, b32 = (t.detach().float().requires_grad_() for t in (x, w, b))
    total, likelihood = negative_log_likelihood(x32, w32, b32, target, smoothing)
    found = torch.autograd.grad(3.0 * total, (x32, w32, b32))
    assert_close(total.double(), plain, atol=1e-5, rtol=1e-5)
    assert_close(likelihood, F.cross_entropy(F.linear(x32, w32, b32), target, reduction="sum"))
    for one, other in zip(found, wanted, strict=True):
        assert_close(one.double(), other, atol=1e-5, rtol=1e-5)


def test_equal_scores_cost_the_logarithm_of_the_vocabulary() -> None:
    """By hand: with zero weights every entry has probability 1/V."""
    total, _ = negative_log_likelihood(
        torch.ones(2, 3), torch.zeros(8, 3), torch.zeros(8), torch.tensor([1, 4])
    )
    assert_close(total, torch.tensor(2 * math.log(8)))


def test_bfloat16_features_give_float32_losses_near_the_exact_one() -> None:
    """Products are in bfloat16, softmax and loss in float32 (T38)."""
    x, w, b = torch.randn(50, 16), torch.randn(30, 16), torch.randn(30)
    target = torch.arange(50) % 30
    exact, _ = negative_log_likelihood(x, w, b, target)
    half, _ = negative_log_likelihood(x.bfloat16(), w, b, target)
    assert half.dtype == torch.float32
    assert_close(half, exact, rtol=0.01, atol=0)


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_targets_that_do_not_count_change_nothing(smoothing: float) -> None:
    """They change neither the loss, which autocast leaves in float32, nor the gradients."""
    x, w, b = (torch.randn(*s, requires_grad=True) for s in ((70, 16), (30, 16), (30,)))
    target = torch.arange(70) % 30
    counted = (torch.arange(70) < 60).float()
    found = []
    with torch.autocast("cpu", torch.bfloat16):
        for total, likelihood in (
            negative_log_likelihood(x, w, b, target, smoothing, counted),
            negative_log_likelihood(x[:60], w, b, target[:60], smoothing),
        ):
            found.append((total, likelihood, *torch.autograd.grad(total, (x, w, b))))
    for one, other in zip(*found, strict=True):
        assert one.dtype == torch.float32
        assert_close(one, other, atol=1e-5, rtol=1e-5)


class NoWait(TorchDispatchMode):
    """Fails at operations whose result the host needs before it can continue: on a GPU it would wait."""

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        waits = {"_local_scalar_dense", "item", "nonzero", "masked_select", "equal", "is_nonzero"}
        assert func.overloadpacket.__name__ not in waits, func
        masks = [
            one for one in tree_leaves(args[1:]) if isinstance(one, torch.Tensor) and one.dtype == torch.bool
        ]
        assert not (func.overloadpacket.__name__ in {"index", "index_put_"} and masks), func
        return func(*args, **(kwargs or {}))


def test_no_host_wait_from_batch_to_gradients(tmp_path: Path) -> None:
    """The plain path, which GPUs take, queues all of a part's work without asking for a result."""
    run = tiny_training(
        tmp_path,
        dropout=0.1,
    )
    inputs = run.inputs(run.train, range(9))
    losses = SummedLoss(run.model, 0.1).train()
    with NoWait():  # type: ignore[no-untyped-call]
        losses(*inputs, None)[0].backward()


def test_the_host_waits_that_are_looked_for_are_found() -> None:
    """This tests the probe itself: each of these operations synchronizes."""
    x = torch.arange(4)
    for wait in (lambda: x[x > 1], lambda: bool((x > 1).any()), x.nonzero, lambda: float(x[0])):
        with pytest.raises(AssertionError), NoWait():  # type: ignore[no-untyped-call]
            wait()
