"""The library on a system that is not Linux. None was there to try it; here is what they lack."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

import convs2s
from tests.package.small_package import write_small_package

ROOT = Path(__file__).parent.parent


@pytest.mark.slow
def test_a_model_is_used_without_what_only_linux_has(tmp_path: Path) -> None:
    """Who has a Mac can translate, draw and serve, if the packages that we need work there."""
    model = write_small_package(tmp_path)
    expected = convs2s.load(model, "cpu").translate(["ein Haus", "noch eins", "ein Hund und eine Maus"])
    command = [sys.executable, "-m", "tests.without_linux", str(model)]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    with subprocess.Popen(
        command, cwd=tmp_path, env=environment, stderr=subprocess.PIPE, encoding="utf-8"
    ) as running:
        assert running.stderr is not None
        try:
            said = ""
            while not (address := re.search(r"http://127\.0\.0\.1:\d+", said)):
                line = running.stderr.readline()
                assert line, said
                said += line
            request = {"q": "ein Haus", "source": "en", "target": "de"}
            answer = httpx.post(f"{address[0]}/translate", json=request, timeout=60)
        finally:
            running.terminate()
    assert answer.json()["translatedText"] == expected[0]
    assert (tmp_path / "target").read_text(encoding="utf-8").splitlines() == expected
    assert (tmp_path / "attention.png").read_bytes().startswith(b"\x89PNG")


PYTHON = f"""#!/bin/sh
exec {sys.executable} -c 'import sys; sys.platform = "darwin"; exec(sys.argv[2])' "$@"
"""
"""Python on macOS, as far as `python3 -c CODE` can tell."""


def test_make_says_at_once_that_it_needs_linux(tmp_path: Path) -> None:
    """Otherwise it would install for minutes, and the first stage would end in an AttributeError."""
    for name in ("Makefile", "pyproject.toml", "constraints.txt"):
        shutil.copy(ROOT / name, tmp_path)
    python = tmp_path / "python3"
    python.write_text(PYTHON)
    python.chmod(0o755)
    command = ["make", "repro", f"PYTHON={python}"]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ended.returncode == 2
    assert ended.stderr.startswith("make: expected Linux, found darwin. To use a model without it, see docs/")
    assert not (tmp_path / ".venv").exists()
