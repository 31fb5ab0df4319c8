"""The HTTP API: its answers and its errors."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest

from convs2s.package.translator import Translator, load
from convs2s.serve.pairs import LanguagePair, load_pairs
from tests.package.small_package import write_small_package
from tests.serve.running import running

TEXT = "ein Haus und"
DETECTED = [{"language": "en", "confidence": 100.0}]
MISSING = "Invalid request: missing q parameter"
PART = b'--b\r\nContent-Disposition: form-data; name="q"\r\n\r\nein\r\n'
# One connection per request; httpx.get would load all CA certificates each time.
HTTP = httpx.Client(verify=False, limits=httpx.Limits(max_keepalive_connections=0))


def post(server: str, path: str = "translate", **fields: Any) -> httpx.Response:
    return HTTP.post(server + path, json={"source": "en", "target": "de"} | fields)


def test_json_forms_and_query_string_give_the_translators_answer(
    server: str, pairs: list[LanguagePair]
) -> None:
    """LibreTranslate accepts all four, and its clients use all four."""
    text = f"{TEXT}\r\n--\r\n\r\n“ein”; name=x"
    fields = {"q": text, "source": "en", "target": "de"}
    wanted = "\n".join(pairs[0].translator.translate(text.split("\n"))).replace("\r", "")
    parts = {name: (None, value) for name, value in fields.items()}
    ways: list[dict[str, Any]] = [{"json": fields}, {"data": fields}, {"files": parts}, {"params": fields}]
    for way in ways:
        assert HTTP.post(server + "translate", **way).json()["translatedText"] == wanted


def test_a_multipart_form_may_have_what_other_clients_write(server: str, pairs: list[LanguagePair]) -> None:
    """Several texts, headers in any case and order, a name without quotation marks, and files, left out."""
    body = (
        b"preamble\r\n--b \r\ncontent-type: text/plain\r\nCONTENT-DISPOSITION: form-data;name=q\r\n\r\nein"
        b'\r\n--b\r\nContent-Disposition: form-data; NAME="q"; x="; name=z;"\r\n\r\nHaus\r\n--'
        b'\r\n--b\r\nContent-Disposition: form-data; filename="a"; name="q"\r\n\r\nund'
        b'\r\n--b\r\nContent-Disposition: form-data; name="source"\r\n\r\nen'
        b'\r\n--b\r\nContent-Disposition: form-data; name="target"\r\n\r\nde\r\n--b--\r\nepilogue'
    )
    headers = {"Content-Type": 'Multipart/Form-Data; charset=utf-8; boundary="b"'}
    answer = HTTP.post(f"{server}translate", content=body, headers=headers).json()
    assert answer["translatedText"] == [
        pairs[0].translator.translate("ein"),
        join_lines(pairs[0], "Haus\n--"),
    ]


def join_lines(pair: LanguagePair, text: str) -> str:
    """Return a text's translation, line by line."""
    return "\n".join(pair.translator.translate(text.split("\n")))


@pytest.mark.parametrize("empty", [None, ""])
def test_what_a_client_does_not_set_counts_as_absent(
    server: str, pairs: list[LanguagePair], empty: str | None
) -> None:
    """Clients send null, and forms empty fields, for what their user leaves open; an empty text is a text."""
    fields = {
        "q": TEXT,
        "source": "en",
        "target": "de",
        "format": empty,
        "alternatives": empty,
        "api_key": empty,
    }
    wanted = {"translatedText": pairs[0].translator.translate(TEXT)}
    for way in ("json", "data", "params")[: 1 if empty is None else 3]:
        assert HTTP.post(server + "translate", **{way: fields}).json() == wanted  # type: ignore[arg-type]
        assert HTTP.post(server + "translate", **{way: fields | {"q": ""}}).json() == {"translatedText": ""}  # type: ignore[arg-type]


def test_lines_and_lists_keep_their_places(server: str, pairs: list[LanguagePair]) -> None:
    """Each line of each text is translated by itself, and an empty one stays empty."""
    house, still = pairs[0].translator.translate(["ein Haus", "noch"])
    answer = post(server, q=["ein Haus\n\nnoch", "", "noch"]).json()
    assert answer == {"translatedText": [f"{house}\n\n{still}", "", still]}


@pytest.mark.parametrize("text", [list[str](), ""])
def test_nothing_to_translate_is_answered_in_its_own_form(server: str, text: list[str] | str) -> None:
    """A client that sends a list, even an empty one, expects a list."""
    assert post(server, q=text).json() == {"translatedText": text}


def test_alternatives_are_the_other_hypotheses(server: str, pairs: list[LanguagePair]) -> None:
    """They come best first and without repeats, at most as many as were asked for; an empty text has none."""
    [ranked] = pairs[0].translator.translate_n_best([TEXT])
    alternatives = list(dict.fromkeys(translation.text for translation in ranked[1:]))
    assert len(alternatives) > 1
    assert post(server, q=TEXT, alternatives=9).json()["alternatives"] == alternatives
    assert post(server, q=[TEXT, ""], alternatives=1).json()["alternatives"] == [alternatives[:1], []]


def test_an_n_best_list_has_the_scores_of_each_line(server: str, pairs: list[LanguagePair]) -> None:
    """LibreTranslate has no scores, so they have a route of their own; an empty line has one hypothesis."""
    [ranked] = pairs[0].translator.translate_n_best([TEXT])
    lines = post(server, "n-best", q=f"{TEXT}\n\nxyz").json()
    assert [line["source"] for line in lines] == [TEXT, "", "xyz"]
    hypotheses = [(hypothesis["text"], hypothesis["score"]) for hypothesis in lines[0]["hypotheses"]]
    assert hypotheses == [(translation.text, round(translation.score, 4)) for translation in ranked]
    assert [hypothesis["text"] for hypothesis in lines[1]["hypotheses"]] == [""]


def test_the_sentences_of_a_line_are_translated_one_by_one(server: str, pairs: list[LanguagePair]) -> None:
    """Clients send paragraphs; the n-best list of a line has those of its sentences as well."""
    first, second = pairs[0].translator.translate_n_best(["ein Haus.", "ein Hund."])
    paragraph = "ein Haus.  ein Hund.\n\nein Haus."
    best = f"{first[0].text}  {second[0].text}"
    answer = post(server, q=paragraph, alternatives=1).json()
    assert answer["translatedText"] == f"{best}\n\n{first[0].text}"
    assert answer["alternatives"] == [f"{first[1].text}  {second[1].text}\n\n{first[1].text}"]
    line, empty, single = post(server, "n-best", q=paragraph).json()
    assert [sentence["source"] for sentence in line["sentences"]] == ["ein Haus.", "ein Hund."]
    assert line["sentences"][0]["hypotheses"] == single["hypotheses"]
    hypothesis = line["hypotheses"][0]
    assert hypothesis["text"] == best
    assert hypothesis["score"] == pytest.approx((first[0].score + second[0].score) / 2, abs=1e-4)
    both = first[0].log_likelihood + second[0].log_likelihood
    assert hypothesis["log_likelihood"] == pytest.approx(both, abs=1e-4)
    assert "sentences" not in empty and "sentences" not in single


def test_lines_are_not_split_for_a_model_of_longer_texts(tmp_path: Path) -> None:
    """A model that writes headlines takes a paragraph as a whole."""
    package = write_small_package(tmp_path, languages=("en", "de"))
    whole = load(package, "cpu").translate_n_best("ein Haus. ein Hund.")[0][0].text
    unsplit = load_pairs([package], "cpu", split_sentences=False)
    with running(unsplit) as server:
        assert post(server, q="ein Haus. ein Hund.").json()["translatedText"] == whole
        [line] = post(server, "n-best", q="ein Haus. ein Hund.").json()
    assert "sentences" not in line


def test_characters_that_the_model_never_saw_are_copied_and_counted(
    server: str, pairs: list[LanguagePair]
) -> None:
    """A field gives their number; an answer without unknown characters lacks it, as in LibreTranslate."""
    plain = pairs[0].translator.translate(TEXT)
    answer = post(server, q=f"🙂 {TEXT}\n\n☃☃").json()
    assert answer == {"translatedText": f"🙂 {plain}\n\n☃☃", "unknownCharacters": 3}
    assert post(server, q=TEXT).json() == {"translatedText": plain}
    lines = post(server, "n-best", q=f"{TEXT}\n🙂 {TEXT}").json()
    assert [line.get("unknownCharacters") for line in lines] == [None, 1]
    attention = [post(server, "attention", q=text).json()["source"] for text in (TEXT, f"🙂 {TEXT}")]
    assert attention[0] == attention[1]


def test_each_pair_has_its_model(server: str, pairs: list[LanguagePair]) -> None:
    """/languages lists the target languages of each source language."""
    answers = [post(server, q=TEXT, source=source).json()["translatedText"] for source in ("en", "fr")]
    assert answers == [pair.translator.translate(TEXT) for pair in pairs]
    assert answers[0] != answers[1]
    assert HTTP.get(server + "languages").json() == [
        {"code": "de", "name": "German", "targets": []},
        {"code": "en", "name": "English", "targets": ["de"]},
        {"code": "fr", "name": "French", "targets": ["de"]},
    ]


def test_models_are_described(server: str) -> None:
    """A user sees what each model translates, what it was trained on, and examples to try."""
    english, french = HTTP.get(server + "models").json()
    assert (english["name"], french["name"]) == ("small en-de", "small fr-de")
    summary = "English to German, trained on 1,234 sentence pairs of tests (license: MIT); 12.3 BLEU on its"
    assert english["summary"] == f"{summary} test set"
    assert (english["languages"], english["examples"]) == ("English → German", ["ein Haus", "noch eins"])


def test_a_model_without_facts_is_named_by_its_languages(pairs: list[LanguagePair]) -> None:
    """An imported model has no model card. It still translates from `auto`, which must be English here."""
    translator = pairs[0].translator
    plain = Translator(translator.words, translator.source, translator.target, None)
    with running([replace(pairs[0], translator=plain)]) as imported:
        [model] = HTTP.get(imported + "models").json()
        assert (model["name"], model["summary"], model["examples"]) == ("en-de", "", [])
        answer = post(imported, q=TEXT, source="auto").json()
        assert answer["translatedText"] == translator.translate(TEXT)
        assert answer["detectedLanguage"] == {"language": "en", "confidence": 100.0}


def test_attention_of_each_layer_is_shown(server: str, pairs: list[LanguagePair]) -> None:
    """Users must see the attention of the translator itself, which is only rounded."""
    answer = post(server, "attention", q=TEXT).json()
    [attention] = pairs[0].attend([TEXT], lambda: None)
    assert (answer["source"], answer["target"]) == (attention.source, attention.target)
    assert list(answer["layers"]) == ["1"]
    for row, weights in zip(answer["layers"]["1"], attention.layers[0], strict=True):
        assert row == pytest.approx(weights, abs=0.0006)


@pytest.mark.parametrize(
    ("text", "error"),
    [(" ", "a text without words."), ("a " * 500, "too long for the model's position table.")],
)
def test_a_text_without_attention_is_refused(server: str, text: str, error: str) -> None:
    """The error says why there is nothing to draw."""
    answer = post(server, "attention", q=text)
    assert answer.status_code == 400
    assert answer.json()["error"].endswith(error)


def test_an_ensemble_shows_no_attention(pairs: list[LanguagePair]) -> None:
    """Each member has layers of its own, and none of these alone made the translation."""
    with running([replace(pairs[0], members=2)]) as ensemble:
        assert post(ensemble, "attention", q=TEXT).json()["error"].endswith("and a single model.")


@pytest.mark.parametrize(
    ("fields", "status", "error"),
    [
        ({}, 400, "Invalid request: missing q parameter"),
        ({"q": None}, 400, "Invalid request: missing q parameter"),
        ({"q": "a", "source": ""}, 400, "Invalid request: missing source parameter"),
        ({"q": "a", "target": "fr"}, 400, "en-fr is not available; this server translates en-de, fr-de."),
        ({"q": "a", "source": "zz"}, 400, "zz is not supported"),
        ({"q": "a", "target": "zz"}, 400, "zz is not supported"),
        ({"q": "a", "target": "auto"}, 400, "en-auto is not available; this server translates en-de, fr-de."),
        ({"q": "a", "source": "auto"}, 400, "auto-de is not available; this server translates en-de, fr-de."),
        (
            {"q": [None] * 9},
            400,
            "Invalid request: q.str: Input should be a valid string; q.list[str].0: Input ",
        ),
        (
            {"q": "a", "format": "pdf"},
            400,
            "Invalid request: pdf format is not supported; expected 'text' or 'html'",
        ),
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
        assert len(answer.content) < 400


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({}, MISSING),
        ({"q": "a", "source": "zz"}, "zz is not supported"),
        ({"q": "a", "target": "zz"}, "zz is not supported"),
    ],
)
def test_what_libretranslate_refuses_is_refused_in_its_words(
    server: str, fields: dict[str, str], error: str
) -> None:
    """Its own tests compare the whole message."""
    assert post(server, **fields).json() == {"error": error}


@pytest.mark.parametrize(
    ("body", "content_type", "error"),
    [
        (b"{", "application/json", "Invalid request: body: Invalid JSON"),
        (b"[]", "application/json; charset=utf-8", "Invalid request: body: Input should be an object"),
        (b'{"api_key": "\\ud800"}', "application/json", "Invalid request: body: Invalid JSON"),
        (b"q=\xff", "application/x-www-form-urlencoded", "Invalid request: expected UTF-8"),
        (
            b'{"q": ""}',
            "text/plain",
            "Invalid request: missing q parameter; missing source parameter; missing target parameter. "
            "Expected JSON, as Content-Type application/json, or a form.",
        ),
        (
            b"q=a",
            "multipart/form-data",
            "Invalid request: the multipart form is not whole. Expected the bound",
        ),
        (
            b"--b\r\n\r\n--b--",
            "multipart/form-data; boundary=",
            "Invalid request: the multipart form is not w",
        ),
        (PART, "multipart/form-data; boundary=b", "Invalid request: the multipart form is not whole."),
        (PART[4:], "multipart/form-data; boundary=b", "Invalid request: the multipart form is not whole."),
        (
            PART * 1001 + b"--b--",
            "multipart/form-data; boundary=b",
            "Invalid request: the multipart form is not",
        ),
        (
            PART + b"--b--",
            "multipart/form-data; boundary=b",
            "Invalid request: missing source parameter; missing",
        ),
        (
            PART.replace(b"ein", b"\xff") + b"--b--",
            "multipart/form-data; boundary=b",
            "Invalid request: expected",
        ),
        (
            b"--b\r\nein\r\n--b--",
            "multipart/form-data; boundary=b",
            "Invalid request: missing q parameter; miss",
        ),
    ],
)
def test_a_body_that_cannot_be_read_is_refused(
    server: str, body: bytes, content_type: str, error: str
) -> None:
    """The error has the same form as any other; JSON can spell a lone surrogate, but no answer could."""
    answer = HTTP.post(server + "translate", content=body, headers={"Content-Type": content_type})
    assert (answer.status_code, answer.json()["error"][: len(error)]) == (400, error)


def test_with_keys_every_translation_needs_one(pairs: list[LanguagePair]) -> None:
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
    for path in ("nowhere", "docs", "metrics", "download_file/a", "page", "../app.py"):
        assert HTTP.get(server + path).json() == {"error": "Not Found"}
    # Bodies are parsed by hand, but described in OpenAPI.
    body = HTTP.get(server + "openapi.json").json()["paths"]["/translate"]["post"]["requestBody"]["content"]
    assert set(body) == {"application/json", "application/x-www-form-urlencoded", "multipart/form-data"}
    assert "alternatives" in body["application/json"]["schema"]["properties"]


@pytest.fixture(scope="module")
def single(pairs: list[LanguagePair]) -> Iterator[str]:
    """Run a server with one pair, hence one source language, and a key."""
    with running(pairs[:1], keys=("key",)) as address:
        yield address


@pytest.mark.parametrize("way", ["json", "data", "params"])
def test_a_single_source_language_is_detected(single: str, way: str) -> None:
    """Clients of LibreTranslate ask for it first; with one language, the answer is certain."""
    for text in (TEXT, [TEXT, "noch"]):
        fields: dict[str, Any] = {way: {"q": text, "api_key": "key"}}
        assert HTTP.post(f"{single}detect", **fields).json() == DETECTED


@pytest.mark.parametrize("way", ["json", "data", "params"])
def test_detection_needs_a_text_and_a_key(single: str, way: str) -> None:
    """It is refused as a translation would be."""
    bearer = {"Authorization": "Bearer key"}
    without_text: list[dict[str, Any]] = [{}, {way: {"q": ""}}]
    for fields in without_text:
        answer = HTTP.post(f"{single}detect", **fields, headers=bearer)
        assert (answer.status_code, answer.json()) == (400, {"error": MISSING})
    without_key: dict[str, Any] = {way: {"q": "a"}}
    assert HTTP.post(f"{single}detect", **without_key).status_code == 403


def test_each_text_of_a_list_has_its_detected_language(single: str) -> None:
    """A client that sends a list reads answers by their place."""
    answer = post(single, q=["ein", "Haus"], source="auto", api_key="key").json()
    assert answer["detectedLanguage"] == DETECTED * 2


def test_several_source_languages_are_not_detected(server: str) -> None:
    """The server cannot detect a language; the error lists those to choose from."""
    answer = HTTP.post(f"{server}detect", json={"q": TEXT})
    error = "Languages are not detected; this server translates from en and fr."
    assert (answer.status_code, answer.json()) == (400, {"error": error})


def test_settings_say_what_the_server_offers(single: str) -> None:
    """LibreTranslate's clients read them before they offer suggestions or files, of which there are none."""
    settings = HTTP.get(f"{single}frontend/settings").json()
    assert settings.pop("language") == {
        "source": {"code": "en", "name": "English"},
        "target": {"code": "de", "name": "German"},
    }
    assert settings == {
        "charLimit": 10_000,
        "frontendTimeout": 500,
        "apiKeys": True,
        "keyRequired": True,
        "suggestions": False,
        "filesTranslation": False,
        "supportedFilesFormat": [],
    }


def test_settings_of_a_server_without_keys_ask_for_none(server: str) -> None:
    """A client would otherwise ask its user for a key that does not exist."""
    assert HTTP.get(f"{server}frontend/settings").json()["keyRequired"] is False


def test_the_specification_has_both_of_its_addresses(server: str) -> None:
    """LibreTranslate serves it as `spec`, FastAPI as `openapi.json`."""
    assert HTTP.get(f"{server}spec").json() == HTTP.get(f"{server}openapi.json").json()


@pytest.mark.parametrize(
    ("path", "error"),
    [
        ("suggest", "Suggestions are disabled on this server."),
        ("translate_file", "Files translation are disabled on this server."),
    ],
)
def test_suggestions_and_files_are_refused(server: str, path: str, error: str) -> None:
    """Their errors are LibreTranslate's own, which clients know."""
    answer = HTTP.post(server + path, files={"file": b"a"})
    assert (answer.status_code, answer.json()) == (403, {"error": error})


@pytest.mark.parametrize(
    "path", ["", "page.js", "health", "languages", "models", "frontend/settings", "spec"]
)
def test_head_is_get_without_a_body(server: str, path: str) -> None:
    """Monitors send it; the connection goes on."""
    with httpx.Client(trust_env=False) as client:
        for _ in range(2):
            head, get = client.head(server + path), client.get(server + path)
            assert head.status_code == get.status_code == 200
            assert head.content == b"" != get.content
            kept = ("content-type", "content-length")
            assert [head.headers[name] for name in kept] == [get.headers[name] for name in kept]
    wrong = HTTP.post(server + path)
    assert (wrong.status_code, wrong.json()) == (405, {"error": "Method Not Allowed"})


@pytest.mark.parametrize("path", ["translate", "detect", "n-best", "attention", "suggest", "translate_file"])
def test_a_text_must_be_posted(server: str, path: str) -> None:
    """GET says so, as LibreTranslate does: a text in a GET request would end up in logs and caches."""
    for method in ("GET", "HEAD", "PUT", "OPTIONS"):
        answer = HTTP.request(method, server + path)
        assert (answer.status_code, answer.headers["Allow"]) == (405, "POST")


def test_pages_of_other_sites_cannot_read_answers(server: str) -> None:
    """LibreTranslate lets any site use it; this server may be on the machine of whoever visits one."""
    for answer in (
        post(server, q="a"),
        HTTP.get(f"{server}models", headers={"Origin": "https://example.org"}),
    ):
        assert answer.status_code == 200
        assert not [name for name in answer.headers if name.startswith("access-control")]
