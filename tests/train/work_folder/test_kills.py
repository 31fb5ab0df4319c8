"""After a kill at any moment, the next run ends with the outputs of an undisturbed one and nothing else."""

import gc
import json
import shutil
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.train.tiny import write_tiny
from tests.train.work_folder.moments import Moments, put_back
from tests.train.work_folder.trainings import OUT, WORK, finish, interrupt, undisturbed


@pytest.mark.parametrize(
    "recipe",
    [{"max_epochs": 3}, {"max_epochs": 2, "average": 2, "optimizer": "adam", "validate_updates": 2}],
    ids=["paper", "recipe"],
)
def test_killed_at_any_operation_the_next_run_ends_as_an_undisturbed_one(
    recipe: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is killed before each operation in turn, in epochs of few updates; the lock remains.

    No file stays open: over days, leaks would exhaust the limit.
    """
    settings: dict[str, Any] = {"checkpoint_updates": 2} | recipe
    write_tiny(tmp_path, train=8, valid=4)
    with monkeypatch.context() as patch:
        moments = Moments(patch, WORK, OUT)
        wanted = finish(**settings)
    kinds = {name.split()[0] for name in moments.names}
    assert kinds == {"open", "mkdir", "replace", "rename", "unlink", "rmdir"}
    assert len(moments.names) > 25, moments.names
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
    """The checkpoint counts, not the model again. It is better than what it started from."""
    finish()
    shutil.move(OUT / "model", "start")
    scratch = json.loads((OUT / "metrics.json").read_text())
    shutil.rmtree(WORK)
    settings: dict[str, Any] = {"start_from": "start", "max_epochs": 3}
    wanted = undisturbed(**settings)
    for after in (1, 3, 4):
        interrupt(monkeypatch, after=after, **settings)
        assert finish(**settings) == wanted
    further = json.loads((OUT / "metrics.json").read_text())
    assert further["validation_perplexity"] < scratch["validation_perplexity"]


@pytest.mark.slow
def test_any_operation_may_fail(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a full disk, the run ends with that error, or succeeds if cleaning up; the next one succeeds."""
    write_tiny(tmp_path, train=8, valid=4)
    settings: dict[str, Any] = {"max_epochs": 3, "checkpoint_updates": 2}
    with monkeypatch.context() as patch:
        whole_run = Moments(patch, WORK, OUT)
        wanted = finish(**settings)
    ended_well: list[str] = []
    for failing in range(len(whole_run.names)):
        shutil.rmtree(WORK)
        shutil.rmtree(OUT, ignore_errors=True)
        with monkeypatch.context() as patch:
            moments = Moments(patch, WORK, OUT, failing=failing)
            try:
                assert finish(**settings) == wanted
                ended_well.append(moments.names[failing].split()[0])
            except OSError as error:
                assert "No space left on device" in str(error)
        assert finish(**settings) == wanted, moments.names[-1]
        assert [path.name for path in WORK.iterdir()] == ["lock"]
    assert set(ended_well) == {"rename", "rmdir", "unlink"}


def test_a_half_written_checkpoint_is_removed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise each kill would leave one, gigabytes in size."""
    (newest, *_) = interrupt(monkeypatch, after=3)
    part = newest.with_name(f".{newest.name}.4711.part")
    part.write_bytes(b"half")
    interrupt(monkeypatch, after=4)
    assert newest.is_file()
    assert not part.exists()
