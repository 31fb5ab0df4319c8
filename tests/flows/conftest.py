"""Fixtures of the flow tests: one Prefect server per test process."""

import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.flows.server import Server, copy_database


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server that all tests share; the first to start migrates the database for all test processes."""
    run = os.environ.get("PYTEST_XDIST_TESTRUNUID", str(os.getpid()))
    database = tmp_path_factory.getbasetemp().parent / f"prefect-{run}.db"
    with database.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        started = Server(tmp_path_factory.mktemp("prefect"), database=database if database.exists() else None)
        started.start()
        if not database.exists():
            copy_database(started.home / "prefect.db", database)
    yield started
    started.stop()


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    """A repository with fake stages."""
    from tests.flows import toy  # noqa: PLC0415

    return toy.make(tmp_path / "toy")
