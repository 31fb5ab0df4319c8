"""After any damage, an earlier checkpoint gives the outputs of an undisturbed training."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from convs2s.train import loop, run
from convs2s.train.training import Training
from tests.train.work_folder.trainings import (
    OUT,
    WORK,
    finish,
    flip,
    interrupt,
    state_of,
    undisturbed,
    updates_of,
    validating,
)


@pytest.mark.parametrize(
    ("damaged", "continued"),
    [
        ([0], "epoch 5, after 8 updates"),
        ([0, 1], "epoch 4, after 6 updates"),
        ([0, 1, 2], "epoch 3, after 4 updates"),
        ([2], "epoch 3, after 4 updates"),  # that of the best epoch, which all later ones need
        ([3], "epoch 5, after 9 updates"),
        ([0, 1, 2, 3], None),
    ],
    ids=str,
)
def test_after_damage_an_earlier_checkpoint_gives_the_same_outputs(
    damaged: list[int],
    continued: str | None,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Any of the checkpoints after 9, 8, 6 (the best) and 4 updates may be damaged; stderr has the reason."""
    nats = [3.0, 2.5, 2.0, 2.7, 2.8]
    validating(monkeypatch, nats)
    wanted = undisturbed()
    checkpoints = interrupt(monkeypatch, after=9)
    assert [updates_of(path) for path in checkpoints] == [9, 8, 6, 4]  # the last two, and the last two bests
    assert state_of(checkpoints[0]).bests(1) == [[6], [4]]
    for i in damaged:
        flip(checkpoints[i])
    capsys.readouterr()
    assert finish() == wanted
    message = capsys.readouterr().err
    assert (f": {continued}." if continued else "Training starts from scratch.") in message
    if damaged != [3]:
        assert f"{checkpoints[damaged[-1]]} is damaged (ValueError: its checksum does not match" in message


@pytest.mark.parametrize(
    ("which", "damage"),
    [
        (0, lambda path: path.write_bytes(b"")),
        (1, lambda path: path.unlink()),
        (1, lambda path: path.write_bytes(path.read_bytes()[:-1])),
        (1, lambda path: shutil.copy(min(path.parent.glob("*.safetensors"), key=updates_of), path)),
    ],
    ids=["last empty", "best missing", "best cut", "best another's"],
)
def test_any_fault_of_a_file_is_survived(
    which: int, damage: Callable[[Path], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file is the last checkpoint or that of the best epoch; outputs are as without the fault."""
    settings: dict[str, Any] = {"max_epochs": 3}
    wanted = undisturbed(**settings)
    checkpoints = interrupt(monkeypatch, after=5, **settings)
    assert [updates_of(path) for path in checkpoints] == [5, 4, 2]
    damage(checkpoints[which])
    assert finish(**settings) == wanted


def test_damage_of_the_best_checkpoint_while_training_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """There is no model then; the next run falls back to an earlier checkpoint."""
    nats = [3.0, 2.0, 2.5, 2.6, 2.7]
    validating(monkeypatch, nats)
    wanted = undisturbed()
    original = loop.train

    def damaging(training: Training) -> Iterator[Any]:
        yield from original(training)
        flip(next(WORK.glob("*/checkpoint-4.*")))

    with monkeypatch.context() as patch:
        patch.setattr(run, "train", damaging)
        with pytest.raises(ValueError, match=r"checkpoint-4\.safetensors is damaged"):
            finish()
    assert not OUT.exists()
    assert finish() == wanted
