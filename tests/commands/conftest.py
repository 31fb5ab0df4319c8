"""Model folders shared by several test files."""

import warnings
from pathlib import Path

import pytest

from tests.golden import import_command, write_checkpoint, write_dictionaries
from tests.package.small_package import write_small_package


@pytest.fixture(scope="package")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Import the plain golden model; return the model folder."""
    folder = tmp_path_factory.mktemp("plain")
    file = write_checkpoint(folder / "model.pt", "plain")
    assert import_command(file, write_dictionaries(folder), folder / "model") == 0
    return folder / "model"


@pytest.fixture(scope="package")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_small_package(tmp_path_factory.mktemp("package"))


@pytest.fixture(autouse=True)
def without_the_engines_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hide the warning about an edited model: tests/engine reports such an edit, and commands still work."""
    begin = "The CPU's fast"
    warnings.filterwarnings("ignore", begin)
    monkeypatch.setenv("PYTHONWARNINGS", f"ignore:{begin}")  # of other processes
