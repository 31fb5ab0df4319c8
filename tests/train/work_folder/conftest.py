"""Each test trains in its own folder, with a tiny corpus."""

from pathlib import Path

import pytest

from convs2s.train.running import follow
from convs2s.train.running.checkpoint_copies import CheckpointCopies
from convs2s.train.running.checkpoint_writer import CheckpointWriter
from convs2s.train.running.work_folder import WorkFolder
from tests.train.tiny import write_tiny
from tests.train.work_folder.trainings import UPDATES


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Relative paths are part of the fingerprint, so each training works in the current folder."""
    write_tiny(tmp_path, train=8 * UPDATES, valid=8)
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def in_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make a thread write checkpoints, as beside a GPU."""

    def start(folder: WorkFolder, copies: CheckpointCopies | None, in_thread: bool) -> CheckpointWriter:
        return CheckpointWriter(folder, copies, in_thread=True)

    monkeypatch.setattr(follow, "CheckpointWriter", start)
