"""Fixtures of the flow tests: one Prefect server and one repository per test process."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.flows import toy
from tests.flows.server import Server, tracebacks


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server that all tests share. Its services must have worked: only its log says if one has not."""
    started = Server(tmp_path_factory.mktemp("prefect"))
    started.start()
    yield started
    started.stop()
    assert not tracebacks(started.home / "server.log")


@pytest.fixture(scope="session")
def pristine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository with fake stages, which no test changes."""
    return toy.make(tmp_path_factory.mktemp("pristine") / "toy")


@pytest.fixture
def repo(pristine: Path, tmp_path: Path) -> Path:
    """A repository with fake stages."""
    return Path(shutil.copytree(pristine, tmp_path / "toy"))
