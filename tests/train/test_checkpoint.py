import dataclasses
import resource
from pathlib import Path

import pytest
import torch

from convs2s.train.checkpoint import load_weights, read, resume, save_checkpoint
from convs2s.train.loop import UpdateReport, train
from tests.model.small import small_model
from tests.train.tiny import ALONE, tiny_training, weights

PRINTS = {"seed": "1", "model": "small"}


def test_a_resumed_training_ends_as_an_uninterrupted_one(tmp_path: Path) -> None:
    """Same batches, same random numbers, same weights, to the last bit, from any update."""
    for name in ("whole", "first", "second"):
        (tmp_path / name).mkdir()
    whole = tiny_training(tmp_path / "whole", max_epochs=2)
    list(train(whole))
    first = tiny_training(tmp_path / "first", max_epochs=2)
    for report in train(first):
        if isinstance(report, UpdateReport) and report.update == 27:  # in the second epoch
            save_checkpoint(tmp_path / "c", first, PRINTS)
            break
    second = tiny_training(tmp_path / "second", max_epochs=2)
    message = resume(tmp_path / "c", second, PRINTS)
    assert "continues" in message
    assert "epoch 2, after 27 updates" in message
    list(train(second))
    assert torch.equal(weights(whole), weights(second))
    assert dataclasses.asdict(whole.state) == dataclasses.asdict(second.state)


def test_a_changed_setting_starts_afresh_and_says_which(tmp_path: Path) -> None:
    """A checkpoint of other parameters must not be resumed."""
    run = tiny_training(tmp_path)
    save_checkpoint(tmp_path / "c", run, PRINTS)
    message = resume(tmp_path / "c", run, PRINTS | {"model": "large"})
    assert "afresh" in message
    assert message.endswith("have changed: model.")
    assert run.state.updates == 0


def test_a_damaged_checkpoint_starts_afresh_and_says_so(tmp_path: Path) -> None:
    """A truncated file must not be read as a complete one."""
    run = tiny_training(tmp_path)
    path = tmp_path / "c"
    save_checkpoint(path, run, PRINTS)
    path.write_bytes(path.read_bytes()[:-10])
    assert "starts afresh: the checkpoint" in resume(path, run, PRINTS)


def test_weights_of_another_shape_are_refused(tmp_path: Path) -> None:
    """A checkpoint of another model says which tensors differ."""
    run = tiny_training(tmp_path)
    save_checkpoint(tmp_path / "c", run, PRINTS)
    _, tensors = read(tmp_path / "c", ALONE.device)
    with pytest.raises(ValueError, match="does not fit the model"):
        load_weights(small_model(), tensors, tmp_path / "c")


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
