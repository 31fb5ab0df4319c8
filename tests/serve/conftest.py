"""Models and a server shared by the tests."""

from collections.abc import Iterator

import pytest

from convs2s.serve.pairs import Pair
from tests.serve.running import load_two, running


@pytest.fixture(scope="package")
def pairs(tmp_path_factory: pytest.TempPathFactory) -> list[Pair]:
    """The pairs en-de and fr-de."""
    return load_two(tmp_path_factory.mktemp("pairs"))


@pytest.fixture(scope="module")
def server(pairs: list[Pair]) -> Iterator[str]:
    with running(pairs) as address:
        yield address
