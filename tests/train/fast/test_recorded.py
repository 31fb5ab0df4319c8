"""Updates of few shapes, recorded and replayed: here by a recorder that needs no GPU."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.testing import assert_close
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from convs2s.text.corpus.batching import Batch
from convs2s.text.vocabulary.vocabulary import EOS, PAD
from convs2s.train import batch_update
from convs2s.train.batch_update import make_update, queue_update, recorded_updates, static_updates
from convs2s.train.distributed import Workers
from convs2s.train.fast import recorded
from convs2s.train.fast.loss import GpuSummedLoss
from convs2s.train.fast.recorded import RecordedUpdates, Recorder, rounded_size, static_arrays
from convs2s.train.fast.switch import few_operations
from convs2s.train.loss import SummedLoss
from convs2s.train.training import Training
from tests.train.tiny import tiny_training, weights

Operation = tuple[Any, tuple[Any, ...], dict[str, Any], Any]


class Tape(TorchDispatchMode):
    """Repeats operations like a CUDA graph: the same ones, on the same memory, with the same numbers.

    Reading a value on the host is an error, as there. Reused memory and the states of random number
    generators are not simulated: they can only be tested on a GPU.
    """

    def __init__(self, memory: list[Tensor]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.memory = memory
        self.operations: list[Operation] = []

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        if func.overloadpacket.__name__ in {"_local_scalar_dense", "nonzero", "masked_select", "equal"}:
            raise RuntimeError(f"{func} waits")
        result = func(*args, **(kwargs or {}))
        self.operations.append((func, args, kwargs or {}, result))
        return result

    def record(self, work: Callable[[], Tensor]) -> tuple[Callable[[], object], Tensor]:
        """Record the work, which itself has no effect."""
        self.operations = []
        before = [one.detach().clone() for one in self.memory]
        with self:
            result = work()
        for one, value in zip(self.memory, before, strict=True):
            one.detach().copy_(value)
        operations = self.operations
        return lambda: replay(operations), result


@torch.no_grad()
def replay(operations: list[Operation]) -> None:
    """Repeat operations; their results overwrite those of the recording."""
    for func, args, kwargs, recorded_result in operations:
        if func.is_view:
            continue
        results = tree_leaves(func(*args, **kwargs))
        for old, new in zip(tree_leaves(recorded_result), results, strict=True):
            if isinstance(old, Tensor) and old.data_ptr() != new.data_ptr():
                old.detach().copy_(new)


def training(folder: Path, **changes: Any) -> tuple[Training, SummedLoss]:
    """Return a tiny training on the layers for GPUs, and its loss."""
    folder.mkdir()
    run = tiny_training(folder, **{"pairs": 48, "max_tokens": 1000, "clip_norm": 0.5, **changes})
    few_operations(run.model)
    return run, GpuSummedLoss(run.model.train(), 0.1)


def tape(run: Training) -> Recorder:
    """Return a recorder for a training, whose optimizer has made an update."""

    def record(work: Callable[[], Tensor]) -> tuple[Callable[[], object], Tensor]:
        return Tape([*run.model.parameters(), *run.optimizer.momenta.values()]).record(work)

    return record


def batches(run: Training) -> list[Batch]:
    """Return the batches of an epoch."""
    return run.batching.epoch(run.train.source.lengths, run.train.target.lengths, 1, 0)


def after(run: Training, losses: SummedLoss, made: RecordedUpdates | None, rates: list[float]) -> list[Any]:
    """Return losses and norms of an epoch at each learning rate, and the weights."""
    done = []
    for rate in rates:
        for batch in batches(run):
            done.append(make_update(run, losses, batch, rate, made))
            run.state.updates += 1
    return [torch.tensor([one[:2] for one in done]), weights(run)]


def test_sizes_are_few_and_at_most_an_eighth_larger() -> None:
    """There are eight sizes from one power of two to the next; each size maps to itself."""
    for count in range(1, 300):
        assert count <= rounded_size(count) <= count * 9 / 8
        assert rounded_size(rounded_size(count)) == rounded_size(count)
    assert len({rounded_size(count) for count in range(65, 129)}) == 8


@pytest.mark.parametrize("limits", [(None, None), (18, 33)])
def test_what_is_added_is_padding(limits: tuple[int | None, int | None]) -> None:
    """Sentences, positions (up to the tables' ends) and target tokens are padded; nothing is lost."""
    source, target = (np.full((17, width), 7) for width in (17, 33))
    target[3, 20:] = PAD
    wide_source, wide_target, real = static_arrays(source, target, limits)
    assert wide_source.shape == (18, 18)
    assert wide_target.shape == (18, 36 if limits[1] is None else 33)
    assert (wide_source[:17, :17] == source).all()
    assert (wide_target[:17, :33] == target).all()
    assert (wide_source[17] == [EOS, *[PAD] * 17]).all()
    assert (wide_target[17:] == PAD).all()
    assert (wide_target[:, 33:] == PAD).all()
    tokens = wide_target.ravel()[real]
    assert (tokens != PAD).sum() == 17 * 33 - 13
    assert len(real) == rounded_size(17 * 33 - 13)
    assert not (tokens[17 * 33 - 13 :] != PAD).any()


def test_a_batch_without_padding_has_nothing_to_point_to() -> None:
    """All target positions are tokens, and their number is not one of the sizes."""
    source, target = np.full((11, 3), 7), np.full((11, 13), 7)
    _, _, real = static_arrays(source, target, (None, None))
    assert len(real) == 11 * 13 < rounded_size(11 * 13)


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_padding_changes_neither_loss_nor_gradient(tmp_path: Path, precision: str) -> None:
    """Batches with sentences, positions and tokens all rounded up are compared with the originals."""
    changes: dict[str, Any] = {"dropout": 0.0, "precision": precision, "batch_sentences": 17, "pairs": 34}
    found = []
    for name in ("plain", "few shapes"):
        run, losses = training(tmp_path / name, clip_norm=1e9, momentum=1e-9, **changes)
        made = static_updates(run, losses, None) if name == "few shapes" else None
        if made:
            source, target, real = static_arrays(*run.train.arrays(batches(run)[0].parts[0]), made.limits)
            assert source.shape[0] > 17
            assert (target.ravel()[real] == PAD).any()
        before = weights(run)
        results, moved = after(run, losses, made, [1.0])
        found.append((results, moved - before))
    for one, other in zip(*found, strict=True):
        assert_close(one, other, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_replayed_updates_are_the_computed_ones_bit_by_bit(tmp_path: Path, precision: str) -> None:
    """This includes dropout, two learning rates, clipping, and numbers of tokens that share a shape."""
    run, losses = training(tmp_path / "computed", precision=precision)
    wanted = after(run, losses, static_updates(run, losses, None), [0.5, 0.125])
    run, losses = training(tmp_path / "replayed", precision=precision)
    made = static_updates(run, losses, tape(run))
    found = after(run, losses, made, [0.5, 0.125])
    assert len(made.recordings) == len(made.seen) > 1
    assert all(torch.equal(one, other) for one, other in zip(found, wanted, strict=True))
    assert not any(p.grad is not None for p in run.model.parameters())


def test_a_training_that_resumes_without_recordings_goes_on_the_same(tmp_path: Path) -> None:
    """One training computes the first update of a shape, the other replays it."""
    results = []
    for name in ("whole", "resumed"):
        run, losses = training(tmp_path / name, layers=1)
        made = static_updates(run, losses, tape(run))
        after(run, losses, made, [0.5])
        if name == "resumed":
            made = static_updates(run, losses, tape(run))
        results.append(after(run, losses, made, [0.5]))
    assert all(torch.equal(one, other) for one, other in zip(*results, strict=True))


def test_a_recording_that_fails_is_said_once_and_training_goes_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The failure is in the middle of backward; it leaves no gradient behind, and is not retried."""
    run, losses = training(tmp_path / "computed", layers=1)
    wanted = after(run, losses, static_updates(run, losses, None), [0.5, 0.5])
    run, losses = training(tmp_path / "failed", layers=1)
    tries = []

    def record(work: Callable[[], Tensor]) -> tuple[Callable[[], object], Tensor]:
        tries.append(work)

        def failing(_: Tensor) -> None:
            raise RuntimeError("operation not permitted when stream is capturing\nmore")

        handle = run.model.encoder.input_map.bias.register_post_accumulate_grad_hook(failing)
        try:
            return lambda: None, work()
        except RuntimeError:
            raise RuntimeError("operation failed due to a previous error during capture")  # noqa: B904
        finally:
            handle.remove()

    found = after(run, losses, static_updates(run, losses, record), [0.5, 0.5])
    assert len(tries) == 1
    assert capsys.readouterr().err == (
        "Warning: An update could not be recorded (operation not permitted when stream is capturing). "
        "Training continues without new recordings: the results are the same, but updates may be slower. "
        "If training still fails, set CONVS2S_RECORD=0.\n"
    )
    assert all(torch.equal(one, other) for one, other in zip(found, wanted, strict=True))


def test_recordings_make_way_for_an_update_that_needs_their_memory(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """It is repeated without them, with the same random numbers; with no recordings, the error is raised."""
    fits = True

    def update(*_: Tensor) -> Tensor:
        number = torch.rand(2)
        if made.recordings or not fits:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB\nmore")
        return number

    made = RecordedUpdates(update, torch.device("cpu"), (None, None), lambda _: (int, torch.zeros(2)))
    small, large = np.full((2, 3), 7), np.full((2, 9), 7)
    for _ in range(2):
        made(small, small, 1.0, 0.5, 1)
    assert len(made.recordings) == 1
    torch.manual_seed(5)
    wanted = torch.rand(2)
    assert torch.equal(made(large, large, 1.0, 0.5, 5), wanted)
    assert not made.recordings
    said = "Warning: Recorded updates leave too little memory for other work (CUDA out of memory."
    assert capsys.readouterr().err.startswith(said)
    fits = False
    with pytest.raises(torch.OutOfMemoryError):
        made(small, small, 1.0, 0.5, 1)
    assert not capsys.readouterr().err


def test_there_are_only_so_many_recordings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Updates of further shapes are computed."""
    monkeypatch.setattr(recorded, "GRAPHS", 1)
    run, losses = training(tmp_path / "a", layers=1)
    made = static_updates(run, losses, tape(run))
    after(run, losses, made, [0.5, 0.5])
    assert len(made.recordings) == 1 < len(made.seen)


@pytest.mark.parametrize("changes", [{"max_tokens": 20}, {"selection": {"common": 2, "candidates": 3}}])
def test_batches_of_other_kinds_are_computed(tmp_path: Path, changes: dict[str, Any]) -> None:
    """They have several parts, or vocabulary selection, with different entries in every batch."""
    run, losses = training(tmp_path / "a", **changes)
    made = static_updates(run, losses, None)
    batch = max(batches(run), key=lambda one: len(one.parts))
    queue_update(run, losses, batch, run.entries(run.train, batch), 0.5, made)
    assert not made.seen


@pytest.mark.parametrize(("place", "is_recorded"), [("cpu", False), ("cuda", True)])
@pytest.mark.parametrize("workers", [1, 2])
def test_one_process_with_a_gpu_records(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str, is_recorded: bool, workers: int
) -> None:
    """Others do not: a CPU has no graphs, and several processes exchange gradients during backward."""
    graphs = lambda work: (work, torch.zeros(2))  # noqa: E731
    monkeypatch.setattr(batch_update, "CudaGraphs", lambda: graphs)
    run, losses = training(tmp_path / "a", layers=1)
    run.workers = Workers(0, workers, torch.device(place))
    made = recorded_updates(run, losses)
    assert (made is not None) == (is_recorded and workers == 1)
    assert made is None or made.record is graphs
    monkeypatch.setenv("CONVS2S_RECORD", "0")
    assert recorded_updates(run, losses) is None


def test_the_tape_notices_a_number_of_the_host(tmp_path: Path) -> None:
    """This tests the probe itself: a learning rate that is not a tensor stays as recorded."""
    run, losses = training(tmp_path / "wanted", layers=1)
    wanted = after(run, losses, static_updates(run, losses, None), [0.5, 0.125])
    run, losses = training(tmp_path / "found", layers=1)
    made = static_updates(run, losses, tape(run))
    whole = made.update

    def of_the_host(source: Tensor, target: Tensor, real: Tensor, scale: Tensor, rate: Tensor) -> Tensor:
        return whole(source, target, real, scale, torch.tensor(rate.tolist()))

    made.update = of_the_host
    found = after(run, losses, made, [0.5, 0.125])
    assert not torch.equal(found[1], wanted[1])
