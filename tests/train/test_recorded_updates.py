"""Recorded updates on a CPU: what padding does, what is recorded, and what a replay gets from its tensors."""

from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.testing import assert_close

from convs2s.train import recorded_updates
from convs2s.train.batch_update import add_gradients
from convs2s.train.loop import UpdateReport, train
from convs2s.train.recorded_updates import Ids, RecordedUpdates, Recording, Update
from convs2s.train.setup import build_training
from convs2s.train.training import Training
from tests.train.tiny import ALONE, batches, on_a_gpu_path, tiny_params, tiny_training, weights, write_tiny

CPU = torch.device("cpu")


class Repeated(RecordedUpdates):
    """Recorded updates without a GPU: a replay makes the update again, on the tensors of the recording."""

    def record(self, update: Update, parts: Sequence[Ids], numbers: Tensor) -> Recording:
        places = [(source.clone(), target.clone()) for source, target in parts], numbers.clone()
        result = torch.zeros((), dtype=torch.float64), torch.zeros(())

        def replay() -> None:
            for old, new in zip(result, update(*places), strict=True):
                old.copy_(new)

        return Recording(*places, result, SimpleNamespace(replay=replay))


@pytest.fixture
def free_memory(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """Return a function that sets the share of a GPU's memory that is free; all of it is at first."""

    def set_share(share: float) -> None:
        monkeypatch.setattr(torch.cuda, "mem_get_info", lambda _: (int(1000 * share), 1000))

    set_share(1.0)
    return set_share


def plain_layers(folder: Path, model: dict[str, Any] | None = None, **changes: Any) -> Training:
    """Return the tiny training without dropout, with the layers of a GPU."""
    write_tiny(folder)
    params = tiny_params(folder, **{"dropout": 0.0, "compile": True, **changes})
    paths = folder / "encoded", folder / "vocabulary", folder / "candidates" / "candidates.npz"
    given = params.model.model_copy(update=model or {})
    run = on_a_gpu_path(build_training(given, params.train, 1, *paths, ALONE))
    run.params = run.params.model_copy(update={"compile": False})
    return run


@pytest.mark.parametrize(
    ("model", "changes"),
    [
        ({}, {}),
        ({}, {"label_smoothing": 0.0, "max_tokens": 20}),
        ({}, {"tied_embeddings": True}),
        ({}, {"selection": {"common": 2, "candidates": 5}}),
        ({"encoder_kernels": [5, 1], "decoder_kernels": [4, 1], "decoder_widths": [24, 16]}, {}),
        ({"attention": [False, True], "extra_scaling": False}, {}),
        ({"source_positions": False, "target_positions": False}, {}),
    ],
)
def test_padding_changes_nothing_but_rounding(
    tmp_path: Path, model: dict[str, Any], changes: dict[str, Any]
) -> None:
    """Loss and gradients are those of the same sentences, in the same parts, without it."""
    run = plain_layers(tmp_path, model, **changes)
    batch = batches(run)[0]
    assert len(batch.parts) > 1 or "max_tokens" not in changes
    losses, found = run.losses(run.params.label_smoothing).train(), []
    for recorded in (None, RecordedUpdates()):
        run.recorded = recorded
        loaded = run.load(batch)
        widths = [ids.shape[1] for part in loaded.parts for ids in part[:2] if ids is not None]
        loss = add_gradients(run, losses, loaded, 1 / batch.target_tokens)
        found.append((widths, loss, [p.grad.clone() for p in run.optimizer.parameters if p.grad is not None]))
        run.optimizer.clear_gradients()
    assert found[1][0] == [-(-width // 8) * 8 for width in found[0][0]] != found[0][0]
    assert float(found[1][1]) == pytest.approx(float(found[0][1]), rel=2e-7)
    largest = max(float(gradient.abs().max()) for gradient in found[0][2])
    for one, other in zip(found[0][2], found[1][2], strict=True):
        assert (one - other).abs().max() < 5e-7 * largest


def test_lengths_are_not_padded_beyond_the_position_table(tmp_path: Path) -> None:
    """A position without a row in the table would be an error of the GPU, with no word of what is wrong."""
    run = plain_layers(tmp_path, {"max_positions": 13})
    run.recorded = RecordedUpdates()
    longest = next(batch for batch in batches(run) if run.train.source.lengths[batch.whole].max() == 9)
    assert [ids.shape[1] for ids in run.load(longest).parts[0][:2] if ids is not None] == [12, 12]
    run.losses(0.0).train()(*run.load(longest).parts[0], None)


@pytest.mark.usefixtures("free_memory")
@pytest.mark.parametrize(("optimizer", "rate"), [("nesterov", 0.25), ("adam", 0.01)])
def test_a_replay_takes_batch_rate_and_count_from_its_tensors(
    tmp_path: Path, optimizer: str, rate: float
) -> None:
    """It repeats numbers of Python, so a training is the plain one only if none of what changes is one."""
    found = []
    for name, recorded in (("plain", None), ("recorded", Repeated())):
        (tmp_path / name).mkdir()
        run = plain_layers(
            tmp_path / name,
            optimizer=optimizer,
            learning_rate=rate,
            warmup_updates=30,
            max_tokens=20,
            max_epochs=3,
        )
        run.recorded = recorded
        reports = [report for report in train(run) if isinstance(report, UpdateReport)]
        found.append(([(r.loss, r.gradient_norm) for r in reports], weights(run)))
    assert recorded is not None
    assert len(recorded.recordings) > 3
    assert_close(torch.tensor(found[1][0]), torch.tensor(found[0][0]), rtol=1e-5, atol=0.0)
    assert (found[1][1] - found[0][1]).abs().max() < 2e-5


def make(recorded: RecordedUpdates, length: int, times: int) -> list[float]:
    """Make updates of a shape whose result is the first id plus the first number; return the results."""

    def update(parts: Sequence[Ids], numbers: Tensor) -> tuple[Tensor, Tensor]:
        total = parts[0][0][0, 0] + numbers[0]
        return total.double(), total

    results = []
    for i in range(times):
        ids = torch.full((2, length), i)
        results.append(float(recorded.make(update, [(ids, ids)], torch.tensor([0.5]))[1]))
    return results


@pytest.mark.usefixtures("free_memory")
def test_a_shape_is_recorded_after_three_updates(monkeypatch: pytest.MonkeyPatch) -> None:
    """A rare shape does not repay it; and recordings are limited, as each takes memory."""
    monkeypatch.setattr(recorded_updates, "MOST_RECORDINGS", 2)
    recorded = Repeated()
    assert make(recorded, 8, 3) == [0.5, 1.5, 2.5]
    assert not recorded.recordings
    assert make(recorded, 8, 3) == [0.5, 1.5, 2.5]
    assert make(recorded, 16, 9) == make(recorded, 24, 9)
    assert [shapes[0][1] for shapes in recorded.recordings] == [8, 16]


def test_an_update_is_not_recorded_if_memory_is_short(free_memory: Callable[[float], None]) -> None:
    """Validation and updates of other shapes need memory, too; it may be free again later."""
    recorded = Repeated()
    free_memory(0.2)
    make(recorded, 8, 5)
    assert not recorded.recordings
    free_memory(0.3)
    make(recorded, 8, 1)
    assert len(recorded.recordings) == 1


@pytest.mark.usefixtures("free_memory")
def test_an_update_with_many_ids_is_not_recorded() -> None:
    """PyTorch sorts more than 3,072 ids for an embedding's gradients, and the host may have to wait."""
    recorded = Repeated()
    make(recorded, 1536, 5)
    make(recorded, 1544, 5)
    assert [shapes[0].numel() for shapes in recorded.recordings] == [3072]


def test_without_a_gpu_it_is_said_that_nothing_is_recorded(tmp_path: Path) -> None:
    """The key may have been set for another machine."""
    with pytest.warns(UserWarning, match=r"train\.graphs: without a GPU, updates are not recorded\."):
        run = tiny_training(tmp_path, graphs=True)
    assert run.recorded is None
