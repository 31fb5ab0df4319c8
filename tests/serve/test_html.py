"""Pages of HTML through the API, as Mastodon and extensions of browsers send them."""

from typing import Any

import httpx
import pytest

from convs2s.package.html_page import translate_html
from convs2s.serve.pairs import LanguagePair

PAGE = (
    '<p>ein <b>Haus</b> &amp; <a href="x?y&amp;z">noch eins</a>. Und <code>ein</code> Hund 🙂.</p>\r\n'
    "<img alt=Haus>"
)
UNKNOWN = 3  # &, U and the emoji; the content of <code> does not count


def post(server: str, path: str = "translate", **fields: Any) -> httpx.Response:
    return httpx.post(server + path, json={"source": "en", "target": "de", "format": "html"} | fields)


def test_pages_are_translated_as_in_python(server: str, pairs: list[LanguagePair]) -> None:
    """A page, or a list of them; line ends are not those of text; an answer has the keys of one for text."""
    pages = [PAGE, "", "<p>12</p>", "noch\n<i>eins</i>" * 150]
    translated = translate_html(pairs[0].translator, pages)
    assert post(server, q=PAGE).json() == {"translatedText": translated[0], "unknownCharacters": UNKNOWN}
    answer = post(server, q=pages, source="auto", target="de", api_key="").json()
    assert "translatedText" not in answer  # two languages have this target
    answer = post(server, q=pages).json()
    assert answer["translatedText"] == translated
    assert translated[1:3] == pages[1:3]
    for part in ('<a href="x?y&amp;z">', "<code>ein</code>", "\r\n<img alt=Haus>", "<b>", "</b>", "&amp;"):
        assert translated[0].count(part) == PAGE.count(part)


def test_elements_that_lose_their_words_are_counted(server: str) -> None:
    """The model writes fewer words than there are elements; the key is absent where none is lost."""
    answer = post(server, q="<i>H</i><i>a</i><i>u</i><i>s</i> " * 100).json()
    assert answer["emptiedElements"] == answer["translatedText"].count("<i></i>") > 0
    assert "emptiedElements" not in post(server, q="<p>Haus</p>").json()


def test_alternatives_are_whole_pages(server: str, pairs: list[LanguagePair]) -> None:
    """In each, all sentences have the translation of one rank."""
    answer = post(server, q=PAGE, alternatives=2).json()
    assert answer["translatedText"] == translate_html(pairs[0].translator, PAGE)
    assert 1 <= len(answer["alternatives"]) <= 2  # without repeats
    assert all(page.count("</a>") == 1 and "<code>ein</code>" in page for page in answer["alternatives"])


@pytest.mark.parametrize("path", ["n-best", "attention"])
def test_routes_for_sentences_take_no_pages(server: str, path: str) -> None:
    """They would show tags as words."""
    answer = post(server, path, q="<b>ein</b>")
    assert answer.status_code == 400
    assert answer.json() == {"error": "html format is not supported here; expected 'text'"}
