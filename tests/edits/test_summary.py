"""What pytest says at its end, if an edit of the model made the engine's tests fail."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ENGINE_FAILED
from tests.edits.table import EDITS
from tests.edits.tree import copy_with_edit
from tests.train.tiny import ROOT

SCALE = EDITS[0]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("test", "lines"),
    [
        ("tests/engine/test_model.py::test_weights_that_cannot_be_packed_give_the_same", [ENGINE_FAILED]),
        ("tests/model/test_multistep_attention.py", []),
    ],
)
def test_a_failure_of_the_engine_s_tests_says_what_it_means(
    tmp_path: Path, test: str, lines: list[str]
) -> None:
    """Whoever edited the model learns of the engine's copy. After any other failure, this would mislead."""
    tree = copy_with_edit(tmp_path / "tree", SCALE.file, SCALE.replacements)
    for name in ("tests", "pyproject.toml"):
        (tree / name).symlink_to(ROOT / name)
    options = "-n", "1", "--dist", "worksteal", "-p", "no:cacheprovider"
    result = subprocess.run(
        [sys.executable, "-B", "-m", "pytest", *options, test],
        cwd=tree,
        env=os.environ | {"PYTHONPATH": str(tree)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == pytest.ExitCode.TESTS_FAILED, result.stdout + result.stderr
    assert [line for line in result.stdout.splitlines() if line == ENGINE_FAILED] == lines
