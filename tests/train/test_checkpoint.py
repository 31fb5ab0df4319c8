import resource
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from convs2s.train.checkpoint import load_weights, read_checkpoint, restore, save_checkpoint
from convs2s.train.loop import UpdateReport, train
from convs2s.train.training import Training
from tests.model.small import small_model
from tests.train.tiny import tiny_training, weights

PRINTS = {"seed": "1", "model": "small"}


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkpoint in the second epoch of a training."""
    folder = tmp_path_factory.mktemp("saved")
    save_checkpoint(folder / "c", stopped_after(12, folder), PRINTS)
    return folder / "c"


def stopped_after(updates: int, folder: Path) -> Training:
    training = tiny_training(folder, pairs=60, max_epochs=2)
    for report in train(training):
        if isinstance(report, UpdateReport) and report.update == updates:
            break
    return training


def test_a_checkpoint_holds_what_was_saved(tmp_path: Path, saved: Path) -> None:
    """It has the same fingerprint and state, and all weights and momenta."""
    found, training = read_checkpoint(saved), stopped_after(12, tmp_path)
    assert found.prints == read_checkpoint(saved, only_prints=True).prints == PRINTS
    assert found.state == training.state
    resumed = tiny_training(tmp_path, pairs=60, max_epochs=2)
    restore(found, resumed, saved)
    assert torch.equal(weights(resumed), weights(training))
    for one, other in zip(resumed.model.parameters(), training.model.parameters(), strict=True):
        assert torch.equal(
            resumed.optimizer.buffers["momentum"][one], training.optimizer.buffers["momentum"][other]
        )


@pytest.mark.parametrize(
    "damage",
    [
        lambda content: b"",
        lambda content: content[:-10],
        lambda content: content + bytes(10),
        lambda content: content[: len(content) // 2] + bytes(len(content) // 2),
        lambda content: bytes(len(content)),
    ],
    ids=["empty", "cut", "extended", "second half zero", "zero"],
)
def test_damage_is_found(tmp_path: Path, saved: Path, damage: Callable[[bytes], bytes]) -> None:
    """A full disk or a power loss can leave such files."""
    path = tmp_path / "c"
    path.write_bytes(damage(saved.read_bytes()))
    with pytest.raises(ValueError, match="c is damaged"):
        read_checkpoint(path)


def test_any_flipped_bit_is_found(tmp_path: Path, saved: Path) -> None:
    """The bit is in the header, with state and checksums, or in a tensor; a sample of positions is tested."""
    content = saved.read_bytes()
    header = 8 + int.from_bytes(content[:8], "little")
    path = tmp_path / "c"
    for position in [*range(0, header, header // 40), *range(header, len(content), len(content) // 20)]:
        damaged = bytearray(content)
        damaged[position] ^= 1 << position % 8
        path.write_bytes(damaged)
        with pytest.raises(ValueError, match="c is damaged"):
            read_checkpoint(path)


def test_weights_of_another_shape_are_refused(saved: Path) -> None:
    """For a checkpoint of another model, the message lists the tensors that differ."""
    with pytest.raises(ValueError, match="does not fit the model"):
        load_weights(small_model(), read_checkpoint(saved), saved)


def test_a_full_disk_leaves_the_previous_checkpoint(tmp_path: Path) -> None:
    """A write that fails midway (here: a file size limit) is reported, and nothing half-written remains."""
    run = tiny_training(tmp_path)
    path = tmp_path / "c"
    save_checkpoint(path, run, PRINTS)
    before = path.read_bytes()
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, hard))
        with pytest.raises(OSError, match="cannot be written") as error:
            save_checkpoint(path, run, PRINTS)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert "disk full" in str(error.value)
    assert path.read_bytes() == before
    assert not list(tmp_path.glob(".c.*"))
