"""The web server of the tests of downloads."""

from collections.abc import Iterator

import pytest

from tests.web import Site, serve


@pytest.fixture
def site(monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    monkeypatch.setattr("time.sleep", lambda _: None)  # pooch's pauses
    with serve() as found:
        yield found
