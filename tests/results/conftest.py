"""A folder of results with the paper's rows and no records."""

import shutil
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """The folder, which tests put records into."""
    folder = tmp_path / "results"
    folder.mkdir()
    shutil.copy(ROOT / "experiments" / "records" / "paper.yaml", folder)
    return folder
