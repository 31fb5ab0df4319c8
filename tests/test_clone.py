"""Code of another clone never runs, whatever the Python environment says."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.mark.parametrize("module", ["stages", "check", "repair", "report.scores", "flows.machine"])
@pytest.mark.parametrize("foreign", ["convs2s", "pipelines"])
def test_every_entrance_refuses_the_code_of_another_clone(module: str, foreign: str, tmp_path: Path) -> None:
    """An editable install in a shared virtual environment would otherwise win."""
    for name in ("convs2s", "pipelines"):
        if name == foreign:
            (tmp_path / name).mkdir()
            (tmp_path / name / "__init__.py").touch()
        else:
            (tmp_path / name).symlink_to(ROOT / name)
    command = [sys.executable, "-P", "-m", f"pipelines.{module}", "--help"]
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith(
        f"{tmp_path}: expected {foreign} of this clone, found {ROOT / foreign}. The"
    )
    assert done.stderr.count("\n") == 1
    assert not done.stdout
