"""The HTTP API: its answers and its errors."""

from dataclasses import replace
from typing import Any

import httpx
import pytest

from convs2s.package.translator import Translator
from convs2s.serve.pairs import Pair
from tests.serve.running import running

TEXT = "ein Haus und"
# One connection per request; httpx.get would load all CA certificates each time.
HTTP = httpx.Client(verify=False, limits=httpx.Limits(max_keepalive_connections=0))


def post(server: str, path: str = "translate", **fields: Any) -> httpx.Response:
    return HTTP.post(server + path, json={"source": "en", "target": "de"} | fields)


def test_json_form_and_query_string_give_the_translators_answer(server: str, pairs: list[Pair]) -> None:
    """LibreTranslate accepts all three, and its clients use all three."""
    fields = {"q": TEXT, "source": "en", "target": "de"}
    wanted = {"translatedText": pairs[0].translator.translate(TEXT)}
    ways: list[dict[str, Any]] = [{"json": fields}, {"data": fields}, {"params": fields}]
    for way in ways:
        assert HTTP.post(server + "translate", **way).json() == wanted


def test_lines_lists_and_alternatives_keep_their_places(server: str, pairs: list[Pair]) -> None:
    """Each line is translated by itself, an empty one stays empty; /n-best gives the scores, too."""
    house, still = pairs[0].translator.translate(["ein Haus", "noch"])
    answer = post(server, q=["ein Haus\n\nnoch", "", "noch"]).json()
    assert answer == {"translatedText": [f"{house}\n\n{still}", "", still]}
    assert [post(server, q=text).json() for text in (list[str](), "")] == [
        {"translatedText": []},
        {"translatedText": ""},
    ]
    [ranked] = pairs[0].translate([TEXT])
    alternatives = list(dict.fromkeys(translation.text for translation in ranked[1:]))
    assert len(alternatives) > 1
    assert post(server, q=TEXT, alternatives=9).json()["alternatives"] == alternatives
    assert post(server, q=[TEXT, ""], alternatives=1).json()["alternatives"] == [alternatives[:1], []]
    lines = post(server, "n-best", q=f"{TEXT}\n\nxyz").json()
    assert [line["source"] for line in lines] == [TEXT, "", "xyz"]
    hypotheses = [(hypothesis["text"], hypothesis["score"]) for hypothesis in lines[0]["hypotheses"]]
    assert hypotheses == [(translation.text, round(translation.score, 4)) for translation in ranked]
    assert [hypothesis["text"] for hypothesis in lines[1]["hypotheses"]] == [""]


def test_each_pair_has_its_model(server: str, pairs: list[Pair]) -> None:
    """/languages lists the target languages of each source language."""
    answers = [post(server, q=TEXT, source=source).json()["translatedText"] for source in ("en", "fr")]
    assert answers == [pair.translator.translate(TEXT) for pair in pairs]
    assert answers[0] != answers[1]
    assert HTTP.get(server + "languages").json() == [
        {"code": "de", "name": "German", "targets": []},
        {"code": "en", "name": "English", "targets": ["de"]},
        {"code": "fr", "name": "French", "targets": ["de"]},
    ]


def test_models_are_described(server: str, pairs: list[Pair]) -> None:
    """An imported model has no facts, so its languages are its name. Source auto is the only language."""
    english, french = HTTP.get(server + "models").json()
    assert (english["name"], french["name"]) == ("small en-de", "small fr-de")
    summary = "English to German, trained on 1,234 sentence pairs of tests (license: MIT); 12.3 BLEU on its"
    assert english["summary"] == f"{summary} test set"
    assert (english["languages"], english["examples"]) == ("English → German", ["ein Haus", "noch eins"])
    translator = pairs[0].translator
    plain = Translator(translator.words, translator.source, translator.target, None)
    with running([replace(pairs[0], translator=plain)]) as imported:
        [model] = HTTP.get(imported + "models").json()
        assert (model["name"], model["summary"], model["examples"]) == ("en-de", "", [])
        answer = post(imported, q=TEXT, source="auto").json()
        assert answer["translatedText"] == translator.translate(TEXT)
        assert answer["detectedLanguage"] == {"language": "en", "confidence": 0.0}


def test_attention_of_each_layer_is_shown(server: str, pairs: list[Pair]) -> None:
    """It is that of the translator, rounded; an ensemble has none."""
    answer = post(server, "attention", q=TEXT).json()
    [attention] = pairs[0].attend([TEXT])
    assert (answer["source"], answer["target"]) == (attention.source, attention.target)
    assert list(answer["layers"]) == ["1"]
    for row, weights in zip(answer["layers"]["1"], attention.layers[0], strict=True):
        assert row == pytest.approx(weights, abs=0.0006)
    for text, error in (
        (" ", "a text without words."),
        ("a " * 500, "too long for the model's position table."),
    ):
        answer = post(server, "attention", q=text)
        assert answer.status_code == 400 and answer.json()["error"].endswith(error)
    with running([replace(pairs[0], members=2)]) as ensemble:
        assert post(ensemble, "attention", q=TEXT).json()["error"].endswith("and a single model.")


@pytest.mark.parametrize(
    ("fields", "status", "error"),
    [
        ({}, 400, "Invalid request: q: Field required. Expected JSON, as Content-Type application/json, or"),
        ({"q": "a", "target": "fr"}, 400, "en-fr is not available; this server translates en-de, fr-de."),
        ({"q": "a", "source": "auto"}, 400, "auto-de is not available; this server translates en-de, fr-de."),
        ({"q": "a", "format": "html"}, 400, "Invalid request: format: Input should be 'text'"),
        ({"q": "a", "alternatives": -1}, 400, "Invalid request: alternatives: Input should be greater than"),
        ({"q": "a" * 10_001}, 400, "Invalid request: 10001 characters exceed the limit of 10000."),
        ({"q": ["a"] * 201}, 400, "Invalid request: 201 lines exceed the limit of 200."),
        ({"q": "a" * (1 << 20)}, 413, "The request is too large; expected at most 1048576 bytes"),
    ],
)
def test_a_refusal_says_why(server: str, fields: dict[str, Any], status: int, error: str) -> None:
    """Errors have LibreTranslate's form, on every route."""
    for path in ("translate", "n-best", "attention"):
        answer = post(server, path, **fields)
        assert answer.status_code == status
        assert answer.json()["error"].startswith(error)


@pytest.mark.parametrize(
    ("body", "content_type", "error"),
    [
        (b"{", "application/json", "Invalid request: body: Invalid JSON"),
        (b"[]", "application/json; charset=utf-8", "Invalid request: body: Input should be an object"),
        (b'{"api_key": "\\ud800"}', "application/json", "Invalid request: body: Invalid JSON"),
        (b"q=\xff", "application/x-www-form-urlencoded", "Invalid request: expected UTF-8"),
        (b'{"q": ""}', "text/plain", "Invalid request: q: Field required; source: Field required; target: F"),
    ],
)
def test_a_body_that_cannot_be_read_is_refused(
    server: str, body: bytes, content_type: str, error: str
) -> None:
    """The error has the same form as any other; JSON can spell a lone surrogate, but no answer could."""
    answer = HTTP.post(server + "translate", content=body, headers={"Content-Type": content_type})
    assert (answer.status_code, answer.json()["error"][: len(error)]) == (400, error)


def test_with_keys_every_translation_needs_one(pairs: list[Pair]) -> None:
    """The key is a field, as LibreTranslate's clients send it, or a bearer token."""
    with running(pairs, keys=("first", "schlüssel")) as server:
        assert [post(server, q="a", api_key=key).status_code for key in ("first", "schlüssel")] == [200, 200]
        assert [post(server, q="a", api_key=key).status_code for key in ("", "firs", "first2")] == [403] * 3
        for path in ("n-best", "attention"):
            assert post(server, path, q="a").status_code == 403
            fields = {"q": "a", "source": "en", "target": "de"}
            bearer = {"Authorization": "Bearer first"}
            assert HTTP.post(server + path, json=fields, headers=bearer).status_code == 200


def test_the_page_needs_no_other_host(server: str) -> None:
    """No file names one, and the policy keeps the browser from loading anything from one."""
    page = HTTP.get(server).text
    assert "content=\"default-src 'none'; script-src 'self'; style-src 'self'; img-src data:;" in page
    for text in (page, *(HTTP.get(server + path).text for path in ("page.css", "page.js"))):
        assert "//" not in text.replace("// ", "")
    assert HTTP.get(server + "nowhere").json() == {"error": "Not Found"}
    # Bodies are parsed by hand, but described in OpenAPI.
    body = HTTP.get(server + "openapi.json").json()["paths"]["/translate"]["post"]["requestBody"]["content"]
    assert set(body) == {"application/json", "application/x-www-form-urlencoded"}
    assert "alternatives" in body["application/json"]["schema"]["properties"]
