"""An empty folder of records, with the paper's rows next to it."""

import shutil
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """Return experiments/records, which tests put records into."""
    experiments = tmp_path / "experiments"
    shutil.copytree(ROOT / "experiments" / "tables", experiments / "tables")
    shutil.copy(ROOT / "experiments" / "paper.yaml", experiments)
    (experiments / "records").mkdir()
    return experiments / "records"
