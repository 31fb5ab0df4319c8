"""The web page, in a real browser."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from convs2s.serve.pairs import Pairs
from tests.serve.browser import Page, find_browser, opened

TEXT = "ein Haus und"
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(find_browser() is None, reason="there is no Chromium on PATH"),
]


@pytest.fixture
def page(server: str, tmp_path: Path) -> Iterator[Page]:
    with opened(find_browser() or "", tmp_path / "profile") as page:
        page.send("Log.enable")
        page.open(server)
        page.wait_for("document.querySelectorAll('#pair option').length === 2")
        yield page
        assert [error for error in page.errors if "400 (Bad Request)" not in error] == []


def read(page: Page, selector: str) -> str:
    return str(page.evaluate(f"document.querySelector({json.dumps(selector)}).innerText"))


def test_it_translates_while_the_user_types(page: Page, pairs: Pairs) -> None:
    """The page shows translation, scored hypotheses, and the attention of the focused token."""
    page.type(TEXT)
    ranked = pairs.find("en", "de").translate([TEXT])[0]
    page.wait_for("document.querySelectorAll('#hypotheses tbody tr').length === 4")
    assert read(page, "#translation") == ranked[0].text
    rows = page.evaluate("[...document.querySelectorAll('#hypotheses tbody tr')].map(r => r.innerText)")
    assert [row.split("\t") for row in rows] == [[f"{one.score:.3f}", one.text] for one in ranked]
    page.wait_for("document.querySelectorAll('#target button').length > 2")
    page.evaluate("document.querySelector('#target button:nth-child(2)').focus()")
    page.wait_for("document.querySelector('#target button:nth-child(2)').ariaPressed === 'true'")
    cells = page.evaluate("[...document.querySelectorAll('#layers td')].map(c => c.innerText)")
    [found] = pairs.find("en", "de").attend([TEXT])
    assert [float(cell) for cell in cells] == pytest.approx(found.layers[0][1].tolist(), abs=0.006)
    page.evaluate(
        "(() => { const pair = document.getElementById('pair'); pair.value = 'fr de';"
        "pair.dispatchEvent(new Event('change')); })()"
    )
    other = pairs.find("fr", "de").translator.translate([TEXT])[0]
    page.wait_for(f"document.getElementById('translation').innerText === {json.dumps(other)}")


def test_errors_replaced_words_and_the_api_are_shown(page: Page, server: str) -> None:
    """The server's own message; marks, also after characters that JavaScript counts as two; all routes."""
    page.evaluate("document.getElementById('text').removeAttribute('maxlength')")
    page.evaluate("document.getElementById('text').value = 'a'.repeat(10001)")
    page.type("a")
    page.wait_for("document.getElementById('status').className === 'error'")
    assert "exceeds text limit" in read(page, "#status")
    html = page.evaluate(
        "(() => { const box = document.createElement('p'); box.append(marked({text: '😀 Ein Zorp & so',"
        "replaced: [{start: 6, end: 10, source_word: 'zorp', how: 'copy'}]})); return box.innerHTML; })()"
    )
    assert html == '😀 Ein <mark title="unknown word: copied from “zorp”">Zorp</mark> &amp; so'
    page.open(server + "docs")
    page.wait_for("document.querySelectorAll('h2').length > 5")
    assert "POST /translate" in read(page, "main")
