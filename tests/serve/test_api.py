"""The HTTP API: its answers and its errors."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import httpx
import pytest

from convs2s.package.translator import Translator
from convs2s.serve.insight import find_spans
from convs2s.serve.pairs import Pair, Pairs
from convs2s.serve.requests import Limits
from tests.serve.running import running

TEXT = "ein Haus und"
# One connection per request; httpx.get would load all CA certificates each time.
HTTP = httpx.Client(verify=False, limits=httpx.Limits(max_keepalive_connections=0))


def post(server: str, path: str = "translate", **fields: Any) -> httpx.Response:
    return HTTP.post(server + path, json={"source": "en", "target": "de"} | fields)


def test_json_form_and_query_string_give_the_translators_answer(server: str, pairs: Pairs) -> None:
    """LibreTranslate accepts all three, and its clients use all three."""
    fields = {"q": TEXT, "source": "en", "target": "de"}
    wanted = {"translatedText": pairs.find("en", "de").translator.translate([TEXT])[0]}
    ways: list[dict[str, Any]] = [{"json": fields}, {"data": fields}, {"params": fields}]
    for given in ways:
        assert HTTP.post(server + "translate", **given).json() == wanted


def test_lines_lists_and_alternatives_keep_their_places(server: str, pairs: Pairs) -> None:
    """Each line is translated by itself, an empty one stays empty; /n-best gives the scores, too."""
    one, other = pairs.find("en", "de").translator.translate(["ein Haus", "noch"])
    answer = post(server, q=["ein Haus\n\nnoch", "", "noch"]).json()
    assert answer == {"translatedText": [f"{one}\n\n{other}", "", other]}
    assert post(server, q=[]).json() == {"translatedText": []}
    [ranked] = pairs.find("en", "de").translate([TEXT])
    others = list(dict.fromkeys(found.text for found in ranked[1:]))  # pieces differ, texts may not
    assert len(others) > 1
    assert post(server, q=TEXT, alternatives=9).json()["alternatives"] == others
    assert post(server, q=[TEXT, ""], alternatives=1).json()["alternatives"] == [others[:1], []]
    lines = post(server, "n-best", q=f"{TEXT}\n\nxyz").json()
    assert [line["source"] for line in lines] == [TEXT, "", "xyz"]
    found = [(one["text"], one["score"]) for one in lines[0]["hypotheses"]]
    assert found == [(one.text, round(one.score, 4)) for one in ranked]
    assert [one["text"] for one in lines[1]["hypotheses"]] == [""]


def test_each_pair_has_its_model(server: str, pairs: Pairs) -> None:
    """/languages lists the target languages of each source language."""
    answers = [post(server, q=TEXT, source=source).json()["translatedText"] for source in ("en", "fr")]
    assert answers == [pairs.find(source, "de").translator.translate([TEXT])[0] for source in ("en", "fr")]
    assert answers[0] != answers[1]
    assert HTTP.get(server + "languages").json() == [
        {"code": "de", "name": "German", "targets": []},
        {"code": "en", "name": "English", "targets": ["de"]},
        {"code": "fr", "name": "French", "targets": ["de"]},
    ]


def test_models_are_described(server: str, pairs: Pairs) -> None:
    """An imported model has no facts, so its languages are its name."""
    known = HTTP.get(server + "models").json()
    assert [one["name"] for one in known] == ["small en-de", "small fr-de"]
    summary = "English to German, trained on 1,234 sentence pairs of tests (license: MIT); 12.3 BLEU on its"
    assert known[0]["summary"] == f"{summary} test set"
    assert known[0]["examples"] == ["ein Haus", "noch eins"]
    pair = pairs.find("en", "de")
    plain = Translator(pair.translator.words, pair.translator.source, pair.translator.target, None)
    with running(Pairs([replace(pair, translator=plain)])) as other:
        [model] = HTTP.get(other + "models").json()
    assert (model["name"], model["summary"], model["examples"]) == ("en-de", "", [])


def test_a_line_unlike_the_training_text_is_marked(server: str) -> None:
    """The letters q, x and z occur in no word of it."""
    lines = post(server, "n-best", q="ein Haus und noch eins.\n\nqzx xqz").json()
    assert [line["rare"] for line in lines] == [False, False, True]


def test_auto_needs_a_single_source_language(pairs: Pairs) -> None:
    """The language is assumed rather than detected, so the confidence is 0."""
    with running(Pairs([pairs.find("en", "de")])) as server:
        answer = post(server, q=TEXT, source="auto").json()
    assert answer["translatedText"] == pairs.find("en", "de").translator.translate([TEXT])[0]
    assert answer["detectedLanguage"] == {"language": "en", "confidence": 0.0}


@pytest.mark.parametrize(
    ("fields", "status", "error"),
    [
        ({}, 400, "Invalid request: missing q parameter."),
        ({"q": "a", "target": "fr"}, 400, "en-fr is not available; this server translates en-de, fr-de."),
        ({"q": "a", "source": "auto"}, 400, "source auto: this server does not detect languages, and en, fr"),
        ({"q": "a", "format": "html"}, 400, "html format is not supported"),
        ({"q": "a", "alternatives": -1}, 400, "Invalid request: alternatives: Input should be greater than"),
        ({"q": "a" * 10_001}, 400, "Invalid request: request (10001) exceeds text limit (10000 characters)."),
        ({"q": ["a"] * 201}, 400, "Invalid request: request (201) exceeds batch limit (200 lines)."),
        ({"q": "a" * (1 << 20)}, 413, "The request is too large; expected at most 1048576 bytes"),
    ],
)
def test_a_refusal_says_why(server: str, fields: dict[str, Any], status: int, error: str) -> None:
    """Errors have LibreTranslate's form."""
    answer = post(server, **fields)
    assert answer.status_code == status
    assert answer.json()["error"].startswith(error)


@pytest.mark.parametrize(
    ("body", "content_type", "status", "error"),
    [
        (b"{", "application/json", 400, "Invalid request: the body is not application/json in UTF-8"),
        (b"[]", "application/json", 400, "Invalid request: the body is not application/json"),
        (b'{"api_key": "\\ud800"}', "application/json", 400, "Invalid request: the body is not"),
        (b"[" * 99_999, "application/json", 400, "Invalid request: the body is not application/json"),
        (b"q=%ff", "application/x-www-form-urlencoded", 400, "Invalid request: the body is not"),
        (b'{"q": ["a", "\xed\xa0\x80"]}', "application/json", 400, "Invalid request: the body is not"),
        (b"q", "text/plain", 415, "expected the Content-Type application/json"),
    ],
)
def test_a_body_that_cannot_be_read_is_refused(
    server: str, body: bytes, content_type: str, status: int, error: str
) -> None:
    """The error has the same form as any other; JSON can spell a lone surrogate, but no answer could."""
    for path in ("translate", "n-best", "attention"):
        answer = HTTP.post(server + path, content=body, headers={"Content-Type": content_type})
        assert (answer.status_code, answer.json()["error"][: len(error)]) == (status, error)


def test_a_full_queue_is_an_error_to_retry(pairs: Pairs) -> None:
    """The status is 503 if the server is busy, 429 if the client itself sent too many lines."""
    with running(pairs, Limits(waiting=2, waiting_per_client=3)) as server:
        full, greedy = (post(server, q=["a"] * lines) for lines in (3, 4))
    assert (full.status_code, full.headers["retry-after"]) == (503, "1")
    assert full.json() == {"error": "The server is busy: 0 lines are waiting. Try again in a second."}
    assert (greedy.status_code, greedy.headers["retry-after"]) == (429, "1")
    assert greedy.json()["error"].startswith("Too many requests: 4 of your lines would be waiting, but the")


def test_with_keys_every_translation_needs_one(pairs: Pairs) -> None:
    """The key is a field, as LibreTranslate's clients send it, or a bearer token, as Prometheus sends it."""
    with running(pairs, keys=("first", "schlüssel")) as server:
        assert [post(server, q="a", api_key=key).status_code for key in ("first", "schlüssel")] == [200, 200]
        assert [post(server, q="a", api_key=key).status_code for key in ("", "firs", "first2")] == [403] * 3
        for path in ("n-best", "attention"):
            assert post(server, path, q="a").status_code == 403
        assert HTTP.get(server + "metrics").status_code == 403
        bearer = {"Authorization": "Bearer first"}
        assert HTTP.get(server + "metrics", headers=bearer).status_code == 200
        assert HTTP.get(server + "frontend/settings").json()["keyRequired"] is True
        assert HTTP.get(server + "health").json() == {"status": "ok"}


def test_attention_has_a_row_per_target_token_and_layer(server: str) -> None:
    """Each row sums to 1 over the source, up to rounding to three decimals."""
    found = post(server, "attention", q=TEXT).json()
    [layer] = found["layers"]
    assert layer["layer"] == 1
    assert len(layer["weights"]) == len(found["target"])
    assert [sum(row) for row in layer["weights"]] == pytest.approx([1.0] * len(found["target"]), abs=0.02)
    assert found["source"][-1] == found["target"][-1] == "</s>"
    for text in ("a\nb", "\u200b"):  # the page asks for any text, such as a lone zero-width space
        assert post(server, "attention", q=text).json() == {
            "error": "Invalid request: expected one line of text in q."
        }


def test_one_failing_line_fails_no_other(pairs: Pairs, monkeypatch: pytest.MonkeyPatch) -> None:
    """The client gets an internal error, and the server goes on answering."""
    plain = Pair.translate

    def failing(self: Pair, lines: list[str]) -> Sequence[Any]:
        if "bad" in lines:
            raise RuntimeError("a bug")
        return plain(self, lines)

    monkeypatch.setattr(Pair, "translate", failing)
    with running(pairs) as server:
        failed = post(server, q=["bad", "a"])
        assert failed.status_code == 500
        assert failed.json() == {"error": "Internal error; the server's log has the details."}
        assert post(server, q="a").status_code == 200


def test_the_page_needs_no_other_host(server: str) -> None:
    """No file names one, and the headers of every answer keep the browser from loading anything from one."""
    for path in ("", "page.css", "page.js", "languages", "nowhere"):
        answer = HTTP.get(server + path)
        assert answer.headers["content-security-policy"].startswith("default-src 'none'; script-src 'self';")
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert "//" not in answer.text.replace("// ", "")
    assert answer.json() == {"error": "Not Found"}
    # Bodies are parsed by hand, but described in OpenAPI.
    body = HTTP.get(server + "openapi.json").json()["paths"]["/translate"]["post"]["requestBody"]["content"]
    assert set(body) == {"application/json", "application/x-www-form-urlencoded"}
    assert "alternatives" in body["application/json"]["schema"]["properties"]


def test_metrics_count_requests_and_lines(pairs: Pairs) -> None:
    """Unknown paths share one counter, or requests could create counters without limit."""
    with running(pairs) as server:
        post(server, q=["a", "b"])
        post(server, q="a", target="fr")
        HTTP.get(server + "x1")
        HTTP.get(server + "x2")
        text = HTTP.get(server + "metrics").text
    for line in (
        'convs2s_requests_total{path="/translate",status="200"} 1.0',
        'convs2s_requests_total{path="/translate",status="400"} 1.0',
        'convs2s_requests_total{path="other",status="404"} 2.0',
        'convs2s_lines_total{source="en",target="de"} 2.0',
        "convs2s_waiting_lines 0.0",
    ):
        assert line in text.splitlines()


def test_words_are_found_in_order_whatever_the_spaces_and_case() -> None:
    """The second `die` must not match the first; detokenization removes spaces, truecasing changes case."""
    text = "Die Frau, die Emma-Lea kennt."
    found = find_spans(text, ["die", "Frau", ",", "die", "Emma-Lea", "kennt", "."])
    assert [text[start:end] for start, end in found] == ["Die", "Frau", ",", "die", "Emma-Lea", "kennt", "."]
    assert found[3] == (10, 13)
