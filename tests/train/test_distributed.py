"""Gradients are exchanged during backward; a worker that is killed or suspended ends the others."""

import os
import signal
from collections.abc import Iterator

import pytest
import torch
import torch.distributed as dist
from torch import nn

from convs2s.base.messages import report_errors
from convs2s.model.precision import Precision
from convs2s.train.distributed import Workers, join_workers
from tests.train.forks import forked


@pytest.fixture
def _group() -> Iterator[None]:
    """Set up an exchange with no other participants, whose sum is its own gradient."""
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    yield
    dist.destroy_process_group()


@pytest.mark.usefixtures("_group")
@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_gradients_are_exchanged_in_the_precision_of_products(precision: Precision) -> None:
    """bfloat16 halves the bytes; the result has the parameter's dtype."""
    layer = nn.Linear(64, 64)
    wrapped = Workers(0, 2, torch.device("cpu")).wrap(layer, precision)
    wrapped(torch.randn(9, 64)).square().sum().backward()
    gradient = layer.weight.grad
    assert gradient is not None
    assert gradient.dtype == torch.float32
    assert torch.equal(gradient, gradient.bfloat16().float()) == (precision == "bfloat16")


@pytest.mark.parametrize(("sees", "status"), [((False, True), 0), ((False, False), 2)])
def test_the_first_that_sees_the_folder_writes(sees: tuple[bool, bool], status: int) -> None:
    """Nodes may have folders of their own; what the writer sends reaches the others."""

    def work() -> None:
        rank = int(os.environ["RANK"])
        with report_errors("worker", "", ""), join_workers(2, sees[rank]) as workers:
            assert workers.writes == (rank == 1)
            assert workers.from_writer(rank) == 1

    with forked(2, work) as workers:
        for worker in workers:
            worker.join(60)
            assert worker.exitcode == status


@pytest.mark.parametrize(("device", "expected"), [("cpu", ("CPU core", 6)), ("cuda:1", ("GPU", 3))])
def test_hardware_is_counted(device: str, expected: object, monkeypatch: pytest.MonkeyPatch) -> None:
    """There is one GPU per worker, or all its threads."""
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda device: f"GPU of {device}")
    monkeypatch.setattr(torch, "get_num_threads", lambda: 2)
    found = Workers(0, 3, torch.device(device)).hardware()
    assert (found["unit"], found["count"]) == expected
    assert found["device"]


def test_a_worker_that_is_killed_ends_the_other_with_a_message(capfd: pytest.CaptureFixture[str]) -> None:
    """It is noticed at once; one that is suspended, after PyTorch's timeout (test_worker_faults)."""

    def work() -> None:
        with report_errors(f"worker {os.environ['RANK']}", "", ""), join_workers(2) as workers:
            workers.barrier()
            if workers.rank == 1:
                os.kill(os.getpid(), signal.SIGKILL)
            workers.total(torch.ones(1))

    with forked(2, work) as workers:
        workers[0].join(60)
        assert workers[0].exitcode == 2
    message = capfd.readouterr().err
    assert message.startswith("worker 0: error: another worker has exited, is suspended or cannot be reached")
    assert message.count("\n") == 1
