"""One Prefect server for all tests of flows; it takes ten seconds to start."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.flows.server import Server


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server that all tests share."""
    started = Server(tmp_path_factory.mktemp("prefect"))
    started.start()
    yield started
    started.stop()


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    """A repository with played stages."""
    from tests.flows import toy  # noqa: PLC0415

    return toy.make(tmp_path / "toy")
