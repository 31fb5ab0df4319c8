"""After a kill at any moment, the next run ends with the outputs of an undisturbed one and nothing else."""

import gc
import shutil
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.train.tiny import write_tiny
from tests.train.work_folder.moments import Moments, put_back
from tests.train.work_folder.trainings import OUT, WORK, finish, interrupt, undisturbed

RECIPES: dict[str, dict[str, Any]] = {
    "paper": {"max_epochs": 3},
    "recipe": {
        "max_epochs": 2, "average": 2, "optimizer": "adam", "warmup_updates": 3, "validate_updates": 2
    },
}  # fmt: skip


@pytest.mark.parametrize(
    "recipe",
    [*RECIPES.values(), pytest.param({"max_epochs": 2, "tied_embeddings": True}, marks=pytest.mark.slow)],
    ids=[*RECIPES, "tied"],
)
def test_killed_at_any_operation_the_next_run_ends_as_an_undisturbed_one(
    recipe: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is killed before each operation in turn, in epochs of few updates; the lock remains."""
    check_kills(recipe, tmp_path, monkeypatch)


@pytest.mark.usefixtures("in_thread")
@pytest.mark.parametrize("recipe", RECIPES.values(), ids=RECIPES)
def test_killed_while_a_thread_writes_the_next_run_ends_as_an_undisturbed_one(
    recipe: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Training is then ahead of the checkpoint, which it must not show."""
    check_kills(recipe, tmp_path, monkeypatch)


def check_kills(recipe: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Check it for this recipe, and that no file stays open: over days, leaks would exhaust the limit."""
    settings: dict[str, Any] = {"checkpoint_updates": 2} | recipe
    write_tiny(tmp_path, train=8, valid=4)
    with monkeypatch.context() as patch:
        moments = Moments(patch, WORK, OUT)
        wanted = finish(**settings)
    kinds = {name.split()[0] for name in moments.names}
    assert kinds == {"open", "mkdir", "replace", "unlink", "rmdir"}
    assert len(moments.names) >= 20, moments.names
    gc.collect()  # closes what earlier tests left open
    open_files = psutil.Process().num_fds()
    for name, content in zip(moments.names, moments.contents, strict=True):
        put_back(content, WORK, OUT)
        assert finish(**settings) == wanted, name
        assert [path.name for path in WORK.iterdir()] == ["lock"], name
    assert psutil.Process().num_fds() == open_files


def test_killed_after_a_start_from_a_model_the_next_run_ends_as_an_undisturbed_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The checkpoint counts, not the model again."""
    finish()
    shutil.move(OUT / "model", "start")
    shutil.rmtree(WORK)
    settings: dict[str, Any] = {"start_from": "start", "max_epochs": 3}
    wanted = undisturbed(**settings)
    assert wanted != undisturbed(max_epochs=3)
    interrupt(monkeypatch, after=3, **settings)
    assert finish(**settings) == wanted
