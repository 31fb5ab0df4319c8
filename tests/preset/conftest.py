"""A folder of experiments in which tests write presets."""

import shutil
from pathlib import Path

import pytest

from pipelines.preset.render import EXPERIMENTS


@pytest.fixture
def experiments(tmp_path: Path) -> Path:
    """Return a folder with the repository's base.yaml and no presets."""
    folder = tmp_path / "experiments"
    (folder / "presets").mkdir(parents=True)
    shutil.copy(EXPERIMENTS / "base.yaml", folder)
    return folder
