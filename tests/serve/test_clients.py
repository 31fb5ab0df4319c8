"""LibreTranslate's clients, unchanged, against a server with two language pairs.

`test_api.py` sends the same requests, so they are tested even where the clients are not installed.
"""

import os
from typing import Any

import pytest

from convs2s.serve.pairs import Pairs
from tests.serve.running import running

TEXT = "ein Haus & noch eins?"


def wanted(pairs: Pairs, source: str) -> str:
    return pairs.find(source, "de").translator.translate([TEXT])[0]


def test_libretranslatepy(server: str, pairs: Pairs) -> None:
    """This client sends forms, and a GET request with a body."""
    module: Any = pytest.importorskip("libretranslatepy")
    client = module.LibreTranslateAPI(server)
    assert [client.translate(TEXT, one, "de") for one in ("en", "fr")] == [
        wanted(pairs, one) for one in ("en", "fr")
    ]
    assert [language["code"] for language in client.languages()] == ["de", "en", "fr"]


def test_deep_translator(pairs: Pairs, monkeypatch: pytest.MonkeyPatch) -> None:
    """This client puts everything in the query string, always with a key, and expects plain text."""
    deep: Any = pytest.importorskip("deep_translator")
    errors: Any = pytest.importorskip("deep_translator.exceptions")
    monkeypatch.setitem(os.environ, "NO_PROXY", "127.0.0.1")
    with running(pairs, keys=("secret",)) as server:
        for source in ("en", "fr"):
            client = deep.LibreTranslator(source, "de", api_key="secret", custom_url=server)
            assert client.translate(TEXT) == wanted(pairs, source)
            assert client.translate_batch([TEXT, TEXT]) == [wanted(pairs, source)] * 2
        with pytest.raises(errors.AuthorizationException):
            deep.LibreTranslator("en", "de", api_key="wrong", custom_url=server).translate(TEXT)
