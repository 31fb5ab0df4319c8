"""LibreTranslate's clients, unchanged, against a server with two language pairs.

`test_api.py` sends the same requests, so they are tested even where the clients are not installed.
"""

from typing import Any

import pytest

from convs2s.serve.pairs import LanguagePair, find_pair
from tests.serve.running import running

TEXT = "ein Haus & noch eins? Das ist ein Hund.\n\n  und noch  eins."


def test_clients_get_the_translators_answers(
    pairs: list[LanguagePair], monkeypatch: pytest.MonkeyPatch
) -> None:
    """libretranslatepy sends forms, and a GET request with a body.

    deep-translator puts everything in the query string, always with a key, and expects plain text.
    """
    libre: Any = pytest.importorskip("libretranslatepy")
    deep: Any = pytest.importorskip("deep_translator")
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with running(pairs, keys=("secret",)) as server:
        for source in ("en", "fr"):
            wanted = find_pair(pairs, source, "de").translator.translate(TEXT)
            client = libre.LibreTranslateAPI(server, api_key="secret")
            assert client.translate(TEXT, source, "de") == wanted
            assert [language["code"] for language in client.languages()] == ["de", "en", "fr"]
            client = deep.LibreTranslator(source, "de", api_key="secret", custom_url=server)
            assert client.translate(TEXT) == wanted
            assert client.translate_batch([TEXT, TEXT]) == [wanted] * 2
        with pytest.raises(deep.exceptions.AuthorizationException):
            deep.LibreTranslator("en", "de", api_key="wrong", custom_url=server).translate(TEXT)
