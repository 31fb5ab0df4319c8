"""Models and a server shared by the tests."""

from collections.abc import Iterator

import pytest

from convs2s.serve.pairs import LanguagePair, load_pairs
from tests.package.small_package import write_small_package
from tests.serve.running import running


@pytest.fixture(scope="package")
def pairs(tmp_path_factory: pytest.TempPathFactory) -> list[LanguagePair]:
    """The pairs en-de and fr-de."""
    folders = [
        write_small_package(tmp_path_factory.mktemp(source), phase, languages=(source, "de"), replace=True)
        for source, phase in (("en", 1.0), ("fr", 2.0))
    ]
    return load_pairs(folders, "cpu", beam_size=4)


@pytest.fixture(scope="module")
def server(pairs: list[LanguagePair]) -> Iterator[str]:
    with running(pairs) as address:
        yield address
