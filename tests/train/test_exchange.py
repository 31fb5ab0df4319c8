"""The exchange between workers during backward, with one process, whose sum is its own gradient."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
import torch.distributed as dist
from torch import nn

from convs2s.train.batch_update import queue_update
from convs2s.train.distributed import Workers
from convs2s.train.fast.loss import GpuSummedLoss
from convs2s.train.fast.switch import few_operations, summed_loss
from tests.train.tiny import ALONE, tiny_training


@pytest.fixture
def group() -> Iterator[None]:
    """Set up an exchange with no other participants."""
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    yield
    dist.destroy_process_group()


@pytest.mark.parametrize("precision", [torch.float32, torch.bfloat16])
def test_gradients_are_exchanged_in_the_precision_of_products(group: None, precision: torch.dtype) -> None:
    """bfloat16 halves the bytes; the result has the parameter's dtype."""
    layer = nn.Linear(64, 64)
    wrapped = Workers(0, 2, torch.device("cpu")).wrap(layer, precision)
    wrapped(torch.randn(9, 64)).square().sum().backward()
    gradient = layer.weight.grad
    assert gradient is not None
    assert gradient.dtype == torch.float32
    assert torch.equal(gradient, gradient.bfloat16().float()) == (precision == torch.bfloat16)


def test_a_process_alone_exchanges_nothing() -> None:
    """Nothing is wrapped or rounded."""
    layer = nn.Linear(4, 4)
    assert ALONE.wrap(layer, torch.bfloat16) is layer


@pytest.mark.parametrize("on_gpu", [False, True])
@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_gradients_of_the_layers_above_come_first(tmp_path: Path, on_gpu: bool, precision: str) -> None:
    """They are exchanged while backward continues: output layer, then decoder, then encoder."""
    run = tiny_training(tmp_path, precision=precision, max_tokens=1000)
    if on_gpu:
        few_operations(run.model)
    losses = GpuSummedLoss(run.model, 0.0) if on_gpu else summed_loss(run.model, 0.0)
    order: list[str] = []
    for name, parameter in run.model.named_parameters():
        parameter.register_post_accumulate_grad_hook(lambda _, name=name: order.append(name))
    batch = run.batching.epoch(run.train.source.lengths, run.train.target.lengths, 1, 0)[0]
    queue_update(run, losses.train(), batch, None, 0.1)
    assert sorted(order) == sorted(name for name, _ in run.model.named_parameters())
    parts = [name.partition(".")[0] for name in order]
    maps = [part for part in parts if "embedding" not in part]
    assert maps == sorted(maps, key=["output_layer", "decoder", "encoder"].index)
