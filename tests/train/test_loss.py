"""The plain loss of the softmax layer; tests/engine compares that of the fast layers with it."""

import math
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch.testing import assert_close
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

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


class NoWait(TorchDispatchMode):
    """Fails at operations whose result the host needs before it can continue: on a GPU it would wait."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = func.overloadpacket.__name__
        tensors = filter(torch.is_tensor, tree_leaves(args[1:]))
        has_mask = any(one.dtype == torch.bool for one in tensors)
        assert name not in {"_local_scalar_dense", "item", "nonzero", "masked_select", "equal", "is_nonzero"}
        assert not (name in {"index", "index_put_"} and has_mask), func
        return func(*args, **(kwargs or {}))


def test_no_host_wait_from_batch_to_gradients(tmp_path: Path) -> None:
    """The plain path, which GPUs take, queues all of a part's work without asking for a result."""
    run = tiny_training(tmp_path, dropout=0.1, compile=True)  # without starting it, so nothing is compiled
    inputs = run.inputs(run.train, range(9))
    losses = run.losses(0.1).train()
    with NoWait():  # type: ignore[no-untyped-call]
        losses(*inputs, None)[0].backward()
