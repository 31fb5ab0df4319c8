"""After any damage, an earlier checkpoint gives the outputs of an undisturbed training."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from convs2s.train import loop, run
from convs2s.train.checkpoint import read_checkpoint
from convs2s.train.training import Training
from tests.train.work_folder.trainings import (
    OUT,
    WORK,
    finish,
    flip,
    interrupt,
    undisturbed,
    updates_of,
    validating,
)


@pytest.mark.parametrize(
    ("damage", "damaged", "continued"),
    [
        (flip, [0], "epoch 5, after 8 updates"),
        (flip, [0, 1], "epoch 4, after 6 updates"),
        (flip, [0, 1, 2], "epoch 3, after 4 updates"),
        (flip, [2], "epoch 3, after 4 updates"),  # that of the best epoch, which all later ones need
        (Path.unlink, [2], "epoch 3, after 4 updates"),
        (flip, [3], "epoch 5, after 9 updates"),
        (flip, [0, 1, 2, 3], None),
    ],
)
def test_after_damage_an_earlier_checkpoint_gives_the_same_outputs(
    damage: Callable[[Path], None],
    damaged: list[int],
    continued: str | None,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Any of the checkpoints after 9, 8, 6 (the best) and 4 updates may be damaged; stderr has why."""
    validating(monkeypatch, [3.0, 2.5, 2.0, 2.7, 2.8])
    wanted = undisturbed()
    checkpoints = interrupt(monkeypatch, after=9)
    assert [updates_of(path) for path in checkpoints] == [9, 8, 6, 4]  # the last two, and the last two bests
    assert read_checkpoint(checkpoints[0]).state.bests(1) == [[6], [4]]
    for i in damaged:
        damage(checkpoints[i])
    capsys.readouterr()
    assert finish() == wanted
    message = capsys.readouterr().err
    assert (f": {continued}." if continued else "Training starts from scratch.") in message
    if damage is flip and damaged != [3]:
        assert f"{checkpoints[damaged[-1]]} is damaged (ValueError: its checksum does not match" in message


def test_damage_of_the_best_checkpoint_while_training_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """There is no model then; the next run falls back to an earlier checkpoint."""
    validating(monkeypatch, [3.0, 2.0, 2.5, 2.6, 2.7])
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
