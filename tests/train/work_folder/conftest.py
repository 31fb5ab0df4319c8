"""Each test trains in its own folder, with a tiny corpus."""

from pathlib import Path

import pytest

from tests.train.tiny import write_tiny
from tests.train.work_folder.trainings import UPDATES


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Relative paths are part of the fingerprint, so each training works in the current folder."""
    write_tiny(tmp_path, train=8 * UPDATES, valid=8)
    monkeypatch.chdir(tmp_path)
