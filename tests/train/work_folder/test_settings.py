"""Changed settings: training continues from existing checkpoints or starts over; nothing is lost."""

import math
import shutil
from typing import Any

import pytest

from convs2s.train import loop
from tests.train.work_folder import trainings
from tests.train.work_folder.trainings import OUT, WORK, finish, interrupt, undisturbed, validating


@pytest.mark.parametrize(
    ("before", "now", "after", "message"),
    [
        ({}, {"max_epochs": 3}, 7, "checkpoint-7.safetensors cannot be used: it is beyond the end"),
        ({}, {"max_epochs": 3}, 6, "continues from work/ID/checkpoint-6.safetensors: epoch 4"),
        ({}, {"patience": 1}, 9, "beyond the end of training, which now comes after epoch 3."),
        ({}, {"min_learning_rate": 0.01}, 9, "beyond the end of training, which now comes after epoch 4."),
        ({"max_epochs": 3}, {"max_epochs": 5}, 6, "checkpoint-6.safetensors: epoch 4, after 6 updates."),
    ],
    ids=["fewer epochs", "exactly the end", "patience", "learning rate", "more epochs"],
)
def test_another_end_gives_what_an_undisturbed_training_to_it_gives(
    before: dict[str, Any],
    now: dict[str, Any],
    after: int,
    message: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A user may change the end in the middle. If the training is beyond it, it goes back to a checkpoint."""
    validating(monkeypatch, [3.0, 2.5, 2.6, 2.4, 2.3])
    common = {"anneal_factor": 0.1, "anneal_after_epoch": 3}
    wanted = undisturbed(**common | now)
    interrupt(monkeypatch, after=after, **common | before)
    identity = next(WORK.glob("*/checkpoint-*")).parent.name
    capsys.readouterr()
    assert finish(**common | now) == wanted
    assert message.replace("ID", identity) in capsys.readouterr().err


@pytest.mark.parametrize(
    ("changes", "name"),
    [({"learning_rate": 0.2}, "learning_rate"), ({"code": {"loop": "1", "loss": "3"}}, "code of loss")],
)
def test_checkpoints_of_other_settings_or_code_are_kept_and_found_again(
    changes: dict[str, Any], name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """An edit and its undo lose nothing, even if the edited training has ended in between."""
    settings: dict[str, Any] = {"code": {"loop": "1", "loss": "2"}, "max_epochs": 4}
    wanted = undisturbed(**settings)
    kept = interrupt(monkeypatch, after=7, **settings)
    contents = [path.read_bytes() for path in kept]
    capsys.readouterr()
    finish(**settings | changes)
    assert (
        f"Training starts from scratch: these have changed since the checkpoint {kept[0]} was written: "
        f"{name}. The checkpoint is kept: undo the change to resume from it, or delete it."
    ) in capsys.readouterr().err
    assert [path.read_bytes() for path in kept] == contents
    assert finish(**settings) == wanted
    assert f"Training continues from {kept[0]}: epoch 4, after 7 updates." in capsys.readouterr().err


def test_a_training_that_moves_keeps_the_precision_that_auto_chose(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Another precision would give other weights than a training that had stayed."""
    wanted = undisturbed(precision="bfloat16")
    choose = "convs2s.model.precision.find_bfloat16"
    monkeypatch.setattr(choose, lambda _: (True, "it is a toy"))
    interrupt(monkeypatch, after=7, precision="auto")
    assert "products in bfloat16, as it is a toy." in capsys.readouterr().err
    monkeypatch.setattr(choose, lambda _: (False, "it is another"))
    assert finish(precision="auto") == wanted
    assert "products stay in bfloat16, as the training began on another" in capsys.readouterr().err


def test_a_finished_training_is_exported_again_until_its_outputs_are_safe(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its stage may have failed after it and lost the outputs; another training may have followed.

    The checkpoints are kept until then, so that nothing is trained again.
    """
    with monkeypatch.context() as patch:
        patch.setattr(trainings, "remove_ended", lambda work: None)
        wanted = finish()
    shutil.rmtree(OUT)
    finish({"loop": "2"})
    shutil.rmtree(OUT)
    capsys.readouterr()
    monkeypatch.setattr(loop, "queue_update", lambda *_: pytest.fail("it trains again"))
    assert finish() == wanted
    assert "Training continues from" in capsys.readouterr().err
    assert [path.name for path in WORK.iterdir()] == ["lock"]


def test_a_training_that_diverges_leaves_no_model(monkeypatch: pytest.MonkeyPatch) -> None:
    """DVC would record it. Neither an epoch that went well nor another training's outputs may be left."""
    interrupt(monkeypatch, after=7)
    for bad in (math.nan, math.inf):
        validating(monkeypatch, [3.0, bad])
        with pytest.raises(FloatingPointError, match=r"after epoch 2 \(4 updates\) the validation loss is"):
            finish(learning_rate=0.2)
        assert not OUT.exists()
