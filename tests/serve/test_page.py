"""The web page, in a real browser."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from convs2s.serve.pairs import LanguagePair
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


def test_it_translates_while_the_user_types(page: Page, pairs: list[LanguagePair]) -> None:
    """The page shows translation, scored hypotheses, and the attention of the focused token."""
    page.type(TEXT)
    ranked = pairs[0].translator.translate_n_best([TEXT])[0]
    page.wait_for("document.querySelectorAll('#hypotheses tbody tr').length === 4")
    assert read(page, "#translation") == ranked[0].text
    rows = page.evaluate("[...document.querySelectorAll('#hypotheses tbody tr')].map(r => r.innerText)")
    assert [row.split("\t") for row in rows] == [[f"{one.score:.3f}", one.text] for one in ranked]
    page.wait_for("document.querySelectorAll('#target button').length > 2")
    page.evaluate("document.querySelector('#target button:nth-child(2)').focus()")
    page.wait_for("document.querySelector('#target button:nth-child(2)').ariaPressed === 'true'")
    cells = page.evaluate("[...document.querySelectorAll('#layers td')].map(c => c.innerText)")
    [found] = pairs[0].attend([TEXT], lambda: None)
    assert [float(cell) for cell in cells] == pytest.approx(found.layers[0][1].tolist(), abs=0.006)
    page.evaluate(
        "(() => { const pair = document.getElementById('pair'); pair.value = '1';"
        "pair.dispatchEvent(new Event('change')); })()"
    )
    other = pairs[1].translator.translate([TEXT])[0]
    page.wait_for(f"document.getElementById('translation').innerText === {json.dumps(other)}")


def test_a_translation_can_be_copied(page: Page, pairs: list[LanguagePair]) -> None:
    """Selecting a long one by hand is tedious; a server without https has no clipboard, but copies, too."""
    page.type(TEXT)
    text = pairs[0].translator.translate_n_best([TEXT])[0][0].text
    page.wait_for(f"document.getElementById('translation').innerText === {json.dumps(text)}")
    assert not page.evaluate("document.getElementById('copy').hidden")
    page.evaluate("document.addEventListener('copy', () => { window.copied = getSelection().toString(); })")
    page.evaluate("navigator.clipboard.writeText = (text) => { window.written = text; }")
    page.evaluate("copy()")
    assert page.evaluate("window.written") == text
    page.evaluate("navigator.clipboard.writeText = () => { throw new Error('insecure'); }")
    page.send("Runtime.evaluate", expression="copy()", awaitPromise=True, userGesture=True)
    assert page.evaluate("window.copied") == text
    assert read(page, "#status") == "Copied."


def test_spaces_that_text_keeps_have_a_picture(page: Page) -> None:
    """Their marks are characters of private use, which browsers draw as boxes with numbers."""
    page.evaluate(
        r"showAttention({source: ['a\u{f0020}'], target: ['\u{f00a0}b'], layers: {1: [[1]]}});"
        "document.getElementById('details').hidden = false"
    )
    assert read(page, "#target button") == "␣b" and read(page, "#layers tr th:nth-child(2)") == "a␣"


def test_errors_are_shown(page: Page) -> None:
    """The page shows the server's own message, which says what to do."""
    page.evaluate("document.getElementById('text').value = 'a'.repeat(10001)")
    page.type("a")
    page.wait_for("document.getElementById('status').className === 'error'")
    assert "characters exceed the limit of 10000" in read(page, "#status")


def test_it_says_what_the_model_knows(page: Page) -> None:
    """A user sees languages and training data; an example fills in the text."""
    assert read(page, "h1") == page.evaluate("document.title") == "small en-de"
    assert "trained on 1,234 sentence pairs of tests" in read(page, "#summary")
    page.evaluate("document.querySelector('#examples button:nth-of-type(2)').click()")
    page.wait_for("document.querySelectorAll('#hypotheses tbody tr').length === 4")
    assert page.evaluate("document.getElementById('text').value") == "noch eins"


def test_a_phone_shows_all_of_it(page: Page) -> None:
    """Nothing is wider than a phone's 360 pixels, so nobody has to scroll sideways."""
    page.send("Emulation.setDeviceMetricsOverride", width=360, height=800, deviceScaleFactor=1, mobile=True)
    page.evaluate(
        "byId('text').value = 'noch eins und '.repeat(9) + '\\n' + 'noch eins und '.repeat(4); translate()"
    )
    page.wait_for("document.querySelectorAll('#target button').length > 2")
    assert page.evaluate("document.documentElement.scrollWidth") == 360


def test_a_pasted_text_shows_each_sentence(page: Page, pairs: list[LanguagePair]) -> None:
    """The translation keeps paragraphs; hypotheses and attention are of the chosen sentence."""
    first, second = pairs[0].translator.translate_n_best(["ein Haus.", "ein Hund."])
    text = "ein Haus. ein Hund.\n\nein Haus."
    page.evaluate(f"document.getElementById('text').value = {json.dumps(text[:-1])}")
    page.type(".")
    page.wait_for("document.querySelectorAll('#sentence option').length === 3")
    assert read(page, "#translation") == f"{first[0].text} {second[0].text}\n\n{first[0].text}"
    page.evaluate(
        "(() => { const chosen = document.getElementById('sentence'); chosen.value = '1';"
        "chosen.dispatchEvent(new Event('change')); })()"
    )
    rows = "[...document.querySelectorAll('#hypotheses tbody tr')].map(r => r.cells[1].innerText).join()"
    page.wait_for(f"{rows} === {json.dumps(','.join(one.text for one in second))}")
