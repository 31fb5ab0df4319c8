"""After any damage, an earlier checkpoint gives the outputs of an undisturbed training."""

from collections.abc import Callable
from pathlib import Path
from unittest import mock

import pytest

from convs2s.train.running import work_folder
from convs2s.train.running.checkpoint import read_checkpoint
from tests.train.work_folder.trainings import cut, finish, interrupt, undisturbed, updates_of, validating


@pytest.mark.parametrize(
    ("damage", "damaged", "continued"),
    [
        (cut, [0], "epoch 5, after 8 updates"),
        (cut, [0, 1, 2], "epoch 3, after 4 updates"),
        (Path.unlink, [2], "epoch 3, after 4 updates"),  # that of the best epoch, which all later ones need
        (cut, [3], "epoch 5, after 9 updates"),
        (cut, [0, 1, 2, 3], None),
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
    if damage is cut and damaged != [3]:
        assert f"{checkpoints[damaged[-1]]} is damaged (SafetensorError" in message


def test_lack_of_memory_does_not_start_a_training_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """The checkpoint is whole, and another try with more memory can use it."""
    validating(monkeypatch, [3.0, 2.5, 2.0, 2.7, 2.8])
    checkpoints = interrupt(monkeypatch, after=9)
    error = RuntimeError("CUDA out of memory. Tried to allocate 2.00 GiB.")
    with monkeypatch.context() as patch:
        patch.setattr(work_folder, "restore", mock.Mock(side_effect=error))
        with pytest.raises(RuntimeError, match="CUDA out of memory"):
            finish()
    assert all(path.is_file() for path in checkpoints)
