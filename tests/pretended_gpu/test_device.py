"""A pretended GPU is as strict as a GPU. What `test_gpu_tests.py` runs on it would otherwise show nothing."""

import multiprocessing
import threading
from collections.abc import Callable, Iterator

import pytest
import torch
from torch import Tensor, nn

from tests.pretended_gpu.state import GIB, STATE

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not STATE.gpus, reason="no GPU is pretended")]


@pytest.fixture(autouse=True)
def nothing_counted() -> Iterator[None]:
    """Count from zero, and leave nothing behind."""
    STATE.counts.reset()
    yield
    STATE.sync_mode, STATE.memory, STATE.capture = "default", 80 * GIB, None
    torch.cuda.set_stream(torch.cuda.default_stream())


def ones(*shape: int, device: str = "cuda:0") -> Tensor:
    return torch.ones(shape, device=device)


@pytest.mark.parametrize(
    "compute",
    [
        lambda a: a + torch.ones(3),
        lambda a: a.add_(torch.ones(3)),
        lambda a: torch.cat([a, torch.ones(1)]),
        lambda a: torch.stack([a[0], torch.tensor(1.0)]),
        lambda a: torch.where(torch.ones(3, dtype=torch.bool), a, 0.0),
        lambda a: a + ones(3, device="cuda:1"),
        lambda a: nn.functional.linear(a, torch.ones(2, 3)),
        lambda a: nn.functional.embedding(torch.tensor([0]), a[:, None]),
    ],
)
def test_mixed_devices_are_an_error(compute: Callable[[Tensor], Tensor]) -> None:
    """Only a number may be on the CPU."""
    a = ones(3)
    for mode in (torch.no_grad(), torch.inference_mode()):
        with mode, pytest.raises(RuntimeError, match="Expected all tensors to be on the same device"):
            compute(a)
    assert (a * torch.tensor(2.0)).sum().item() == 6


@pytest.mark.parametrize(
    "compute",
    [
        lambda a: a.sum().item(),
        lambda a: bool(a[0]),
        lambda a: a.tolist(),
        lambda a: a.cpu(),
        lambda a: a.to("cpu", torch.float64),
        lambda a: torch.zeros(3).copy_(a),
        lambda a: a.nonzero(),
        lambda a: a[a > 0],
        lambda a: a.masked_select(a > 0),
        lambda a: torch.equal(a, a),
        lambda a: torch.ones(3).to("cuda"),
        lambda a: torch.ones(3).to("cuda", non_blocking=True),
        lambda a: torch.ones(3).pin_memory().cuda(),
        lambda a: torch.tensor([1.0], device="cuda"),
        lambda a: a.new_tensor(1.0),
        lambda a: a.copy_(torch.ones(3), non_blocking=True),
        lambda a: a[torch.tensor([0])],
        lambda a: torch.cuda.current_stream().synchronize(),
    ],
)
def test_waits_of_the_host_are_counted_and_may_be_errors(compute: Callable[[Tensor], object]) -> None:
    """In inference mode PyTorch brings whole operations, in which a wait could hide."""
    a = ones(3)
    for count, mode in enumerate((torch.no_grad(), torch.inference_mode()), start=1):
        with mode:
            compute(a)
            assert STATE.counts.waits.total() == count
    torch.cuda.set_sync_debug_mode("error")
    with pytest.raises(RuntimeError, match="called a synchronizing CUDA operation"):
        compute(a)


def test_other_work_does_not_make_the_host_wait() -> None:
    """Else the tests of the product would forbid what is fine."""
    torch.cuda.set_sync_debug_mode("error")
    a = torch.ones(3).pin_memory().to("cuda", non_blocking=True)
    a[a > 2] = 0.0
    a[0] = 5.0
    a[a.argsort()].softmax(0).to("cpu", non_blocking=True)
    assert torch.zeros(3, pin_memory=True).is_pinned()
    assert (STATE.counts.waits.total(), STATE.counts.unpinned) == (0, 0)
    torch.cuda.set_sync_debug_mode("default")
    torch.ones(3).to("cuda", non_blocking=True)
    assert STATE.counts.unpinned == 1


@pytest.mark.parametrize("values", [[1.5, 2.0], [7, 8], [True, False]])
@pytest.mark.parametrize("wait", ["stream", "event", "device", "item"])
def test_a_copy_is_wrong_until_the_host_has_waited(values: list[float], wait: str) -> None:
    """A GPU may not have written it yet, or only in a test that happens to be fast."""
    a = torch.tensor(values, device="cuda")
    buffer = torch.zeros_like(a, device="cpu").pin_memory()
    copies = a.to("cpu", non_blocking=True), buffer.copy_(a, non_blocking=True)
    event = torch.cuda.Event()
    event.record()
    assert not any((copy == torch.tensor(values)).any() for copy in copies)
    {
        "stream": torch.cuda.current_stream().synchronize,
        "event": event.synchronize,
        "device": torch.cuda.synchronize,
        "item": a.sum().item,
    }[wait]()
    assert [copy.tolist() for copy in copies] == [values, values]


def test_an_event_is_not_over_when_it_is_first_asked() -> None:
    """Who does not ask again reads too early."""
    copy = ones(1).to("cpu", non_blocking=True)
    event = torch.cuda.current_stream().record_event()
    assert not event.query()
    assert copy.isnan().all()
    assert event.query()
    assert copy == 1


def test_a_side_stream_needs_to_wait_for_what_it_reads_and_be_waited_for() -> None:
    """It copies as late as it may, so that what overwrites its source too early is copied."""
    side = torch.cuda.Stream()
    a = ones(2)
    with torch.cuda.stream(side), pytest.raises(RuntimeError, match="before another has written it"):
        a.to("cpu", non_blocking=True)
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        early = a.to("cpu", non_blocking=True)
    a.fill_(2)
    torch.cuda.current_stream().wait_stream(side)
    a.fill_(3)
    side.synchronize()
    assert early.tolist() == [2, 2]


def record(graph: torch.cuda.CUDAGraph, compute: Callable[[], Tensor], **options: object) -> Tensor:
    """Capture a computation; return its result."""
    with torch.cuda.graph(graph, **options):  # type: ignore[arg-type]
        return compute()


def test_a_graph_records_and_repeats_in_the_same_memory() -> None:
    """A capture computes nothing; a replay reads and writes what is there."""
    x, total, graph = ones(2), torch.zeros(2, device="cuda"), torch.cuda.CUDAGraph()
    doubled = record(graph, lambda: total.add_(x * 2) * 1.0)
    assert doubled.isnan().all()
    assert total.tolist() == [0, 0]
    for value, expected in ((1.0, 2.0), (3.0, 8.0)):
        x.fill_(value)
        graph.replay()
        assert (doubled.tolist(), total.tolist()) == ([expected] * 2, [expected] * 2)


def test_a_recorded_update_is_the_plain_one() -> None:
    """Forward, backward with dropout, and the step of an optimizer."""

    def update(model: nn.Module, x: Tensor) -> Tensor:
        loss: Tensor = model(x).square().sum()
        loss.backward()
        with torch.no_grad():
            for parameter in model.parameters():
                assert parameter.grad is not None
                parameter.sub_(parameter.grad, alpha=0.01)
                parameter.grad = None
        return loss.detach()

    x, graph = ones(4, 3), torch.cuda.CUDAGraph()
    models = [nn.Sequential(nn.Linear(3, 8), nn.Dropout(), nn.Linear(8, 1)).cuda() for _ in range(2)]
    models[1].load_state_dict(models[0].state_dict())
    loss = record(graph, lambda: update(models[0], x))
    for seed in (1, 2):
        torch.manual_seed(seed)
        graph.replay()
        torch.manual_seed(seed)
        assert update(models[1], x).item() == loss.item()
    assert all(map(torch.equal, models[0].parameters(), models[1].parameters()))


@pytest.mark.parametrize(
    "compute",
    [
        lambda a: a.sum().item(),
        lambda a: a[a > 0],
        lambda a: a.cpu(),
        lambda a: a.to("cpu", non_blocking=True),
        lambda a: torch.tensor([1.0], device="cuda"),
        lambda a: torch.cuda.synchronize(),
    ],
)
@pytest.mark.parametrize("beside", [False, True])
def test_a_capture_forbids_waits(compute: Callable[[Tensor], object], beside: bool) -> None:
    """By default also those of other threads, such as one that writes a checkpoint."""
    a, errors = ones(3), list[RuntimeError]()

    def refused() -> Tensor:
        try:
            compute(a)
        except RuntimeError as error:
            errors.append(error)
        return a

    def capture(mode: str) -> None:
        thread = threading.Thread(target=refused)
        with torch.cuda.graph(torch.cuda.CUDAGraph(), capture_error_mode=mode):
            if beside:
                thread.start()
                thread.join()
            else:
                refused()

    with pytest.raises(RuntimeError, match="previous error during capture"):
        capture("global")
    assert "operation not permitted when stream is capturing" in str(errors[0])
    if beside:
        capture("thread_local")
        assert len(errors) == 1


def test_a_graph_needs_its_inputs_its_pool_and_a_side_stream() -> None:
    """Each of these is silent or fatal on a GPU."""
    x, graph = ones(2), torch.cuda.CUDAGraph()
    with pytest.raises(RuntimeError, match="non-default stream"):
        graph.capture_begin()
    record(graph, lambda: x + 1)
    pool = graph.pool()
    record(torch.cuda.CUDAGraph(), lambda: ones(1), pool=pool)
    del x
    with pytest.raises(RuntimeError, match="memory that it reads was freed"):
        graph.replay()
    del graph
    with pytest.raises(RuntimeError, match="all graphs of this pool have been dropped"):
        record(torch.cuda.CUDAGraph(), lambda: ones(1), pool=pool)


def test_memory_is_counted_and_limited() -> None:
    """Views share it, and what a graph made stays with it."""
    before = torch.cuda.memory_allocated()
    a = ones(1000)
    b = a[10:]
    del a
    assert torch.cuda.memory_allocated() - before == 4000
    del b
    assert torch.cuda.memory_allocated() == before
    assert torch.cuda.max_memory_allocated() >= before + 4000
    graph = torch.cuda.CUDAGraph()
    record(graph, lambda: ones(1000))
    assert torch.cuda.memory_allocated() - before == 4000
    del graph
    STATE.memory = before + 6000
    assert torch.cuda.mem_get_info() == (6000, before + 6000)
    a = ones(1000)
    assert torch.cuda.mem_get_info()[0] == 2000
    with pytest.raises(torch.OutOfMemoryError, match="Tried to allocate"):
        a.clone()


def test_autocast_computes_in_the_types_of_a_gpu() -> None:
    """The CPU's autocast has other lists; products are in bfloat16, sensitive sums in float32."""
    layer, x = nn.Linear(3, 3).cuda(), ones(2, 3)
    with torch.autocast("cuda", torch.bfloat16):
        y = layer(x)
        assert y.dtype == torch.bfloat16
        assert y.log_softmax(1).dtype == y.sum().dtype == torch.cat([x, y]).dtype == torch.float32
    assert layer(x).dtype == torch.float32
    y.float().sum().backward()
    assert layer.weight.grad is not None
    assert layer.weight.grad.dtype == torch.float32


def test_parameters_stay_the_same_objects_on_a_gpu() -> None:
    """An optimizer may hold them, and two modules share them."""
    layers = nn.ModuleList([nn.Linear(2, 2), nn.Linear(2, 2)])
    weight = layers[1].weight = layers[0].weight
    assert layers.cuda()[0].weight is layers[1].weight is weight
    assert weight.device == torch.device("cuda", 0)


def test_a_process_has_the_gpus_that_it_may_see(monkeypatch: pytest.MonkeyPatch) -> None:
    """Flows lease GPUs by this variable."""
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1")
    assert torch.cuda.device_count() == 1
    with pytest.raises(RuntimeError, match="invalid device ordinal"):
        torch.cuda.set_device(1)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    assert not torch.cuda.is_available()


def test_tensors_are_made_where_they_should_be() -> None:
    """Also by PyTorch's own formulas of gradients, for which a GPU's tensor is on `cpu`."""
    a = ones(3).requires_grad_()
    a[torch.tensor([0, 2], device="cuda")].sum().backward()
    a.index_select(0, torch.tensor([1], device="cuda")).sum().backward()
    assert a.grad is not None
    assert a.grad.tolist() == [1, 1, 1]
    pinned = torch.empty_like(a, device="cpu", pin_memory=True)
    assert pinned.is_pinned()
    assert {torch.zeros_like(a).device, a.new_zeros(2).device, a.new_tensor(1).device} == {a.device}
    devices: list[torch.device] = []
    thread = threading.Thread(target=lambda: devices.append(ones(1).device))
    thread.start()
    thread.join()
    assert devices == [a.device]


def test_a_forked_process_cannot_use_the_gpu() -> None:
    """CUDA does not survive a fork."""
    a = ones(2)

    def use() -> None:
        with pytest.raises(RuntimeError, match="Cannot re-initialize CUDA in forked subprocess"):
            a.sum()

    process = multiprocessing.get_context("fork").Process(target=use)
    process.start()
    process.join()
    assert process.exitcode == 0
