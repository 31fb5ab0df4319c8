"""Whatever a page is, and whatever its translation, its tags come out as they went in."""

import itertools
import random
import re
from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from convs2s.html.draft import Traced, Word
from convs2s.html.elements import FORMATTING, VOID
from convs2s.html.segments import make_text
from convs2s.html.tokens import tokenize
from convs2s.package.html_page import HtmlPage, translate_html
from convs2s.package.translator import Translator, load
from convs2s.text.words.tokenization import OBJECT
from tests.package.small_package import write_small_package
from tests.properties.conftest import EXAMPLES

PIECES = [
    "<p>", "</p>", "<p class=notranslate>", "<x-y>", "</x-y>", "<pre>", "</pre>", "<title>", "</title>",
    "<b>", "</b>", "<i>", "</i>", "<a href='>'>", "</a>", "<a id=x />", "<sup>", "</sup>",
    "<span translate=no>", "</span>", "<code>", "</code>", "<br>", "<BR/>", "</br>", "<wbr>", "<img>",
    "<script>", "</script>", "<textarea>", "<!-- x -->", "<!--", "-->", "<!", "<?", "</", "<", ">",
    '"', "'", "=", "&amp;", "&lt;", "&nbsp;", "&#xfffc;", OBJECT, "\u00ad", "\n", " ", "One. ", "two ",
    "Three! ", "12", "(", ")", ".", ",", "é", "🙂", "猫",
]  # fmt: skip
NESTED_BADLY = [
    "<b>",
    "</b>",
    "<i>",
    "</i>",
    "<a>",
    "</a>",
    "<span>",
    "</span>",
    "<p>",
    "One ",
    "two",
    " ",
    "<br>",
]
SOUP = st.one_of(
    st.lists(st.sampled_from(PIECES), max_size=40).map("".join),
    st.lists(st.sampled_from(NESTED_BADLY), max_size=20).map("".join),
    st.text(max_size=60).map(lambda text: text.encode("utf-8", "replace").decode("utf-8")),
    st.text("<>/!-=\"' ab&;#x0\n", max_size=60),
)
LEAVES = st.sampled_from([
    "One. ", "two ", "Three! ", "12", "(", ")", ".", ",", " ", "🙂", "<br>", "<img>", "<wbr>", "<!-- x -->",
    "<code>x</code>", "<sup>1</sup>",
])  # fmt: skip
TREES = st.lists(
    st.recursive(
        LEAVES,
        lambda trees: st.tuples(
            st.sampled_from(["b", "i", "u", "span", "sup", "p"]), st.lists(trees, max_size=5)
        ),
        max_leaves=25,
    ),
    max_size=6,
)
hundreds = settings(max_examples=max(EXAMPLES, 300))


def scramble(sentence: str, dice: random.Random) -> Traced:
    """Return words of the sentence in any order, some of them lost or invented, with any origins."""
    words = list(re.finditer(r"\S+", sentence))
    dice.shuffle(words)
    text = ""
    scrambled = []
    for word in words:
        if dice.random() < 0.15:
            continue
        text += dice.choice(("", " ", " "))
        start = len(text)
        text += word[0] + dice.choice(("", "", "", "", OBJECT))
        anywhere = [dice.randrange(len(sentence)) for _ in range(3)]
        origins = dice.choice(([word.start()], [word.start()], anywhere, []))
        scrambled.append(Word(start, start + len(word[0]), origins))
    return Traced(text, scrambled)


def repeat(sentence: str) -> Traced:
    """Return the sentence as its translation, linked by characters."""
    characters = [i for i, character in enumerate(sentence) if not character.isspace()]
    return Traced(sentence, [Word(i, i + 1, [i]) for i in characters])


def list_gaps(page: str) -> tuple[str, list[Counter[str]]]:
    """Return the text of a page without white space, and the tags before each of its characters."""
    text = ""
    gaps = [Counter[str]()]
    for token in tokenize(page):
        if token.kind == "text":
            characters = "".join(make_text(token.raw).text.split())
            text += characters
            gaps += [Counter() for _ in characters]
        else:
            gaps[-1]["".join(token.raw.split())] += 1
    return text, gaps


def list_tags(page: str) -> Counter[str]:
    return Counter(token.raw for token in tokenize(page) if token.kind != "text")


def list_added(page: str, written: str) -> Counter[str]:
    """Return the tags that a translated page has, and the page has not."""
    return list_tags(written) - list_tags(page)


def is_added_by_nesting(tags: Counter[str], page: str) -> bool:
    """Return whether tags may be those of elements that end and begin again, so that they are nested."""
    started = {token.raw for token in tokenize(page) if token.kind == "start"}
    ended = {
        f"</{token.name}>" for token in tokenize(page) if token.name in FORMATTING | {"span", "sup", "x-y"}
    }
    return {*tags} <= started | ended


def split(text: str) -> list[str]:
    return re.split(r"(?<=\. )", text)


@hundreds
@given(page=SOUP, seed=st.integers(0, 1000))
def test_every_tag_is_kept(page: str, seed: int) -> None:
    """Be the page broken and its translation nonsense; only tags that are badly nested get others."""
    read = HtmlPage(page, split, "en")
    dice = random.Random(seed)
    written = read.write([scramble(sentence, dice) for sentence in read.sentences])
    assert not list_tags(page) - list_tags(written)
    assert is_added_by_nesting(list_added(page, written), page)


@hundreds
@given(page=SOUP)
def test_what_does_not_change_stays_where_it_is(page: str) -> None:
    """Where each sentence is its own translation, all tags stay between the same characters."""
    read = HtmlPage(page, split, "en")
    written = read.write([repeat(sentence) for sentence in read.sentences])
    text, gaps = list_gaps(written)
    page_text, page_gaps = list_gaps(page)
    assert text == page_text
    assert all(not kept - found for kept, found in zip(page_gaps, gaps, strict=True))


def write_tree(tree: Any) -> str:
    if isinstance(tree, str):
        return tree
    name, trees = tree
    return f"<{name}>{''.join(map(write_tree, trees))}</{name}>"


def list_parents(page: str) -> Counter[tuple[str, str]]:
    """Return each tag of a well-formed page with the start tag of the element that it is in."""
    parents = Counter[tuple[str, str]]()
    opened = [""]
    for token in tokenize(page):
        if token.kind == "text":
            continue
        parents[token.raw.strip(), opened[-1]] += 1
        if token.kind == "start" and token.name not in VOID:
            opened.append(token.raw)
        elif token.kind == "end":
            assert len(opened) > 1
            opened.pop()
    assert len(opened) == 1
    return parents


@hundreds
@given(trees=TREES, seed=st.integers(0, 1000))
def test_every_element_stays_in_its_parent(trees: list[Any], seed: int) -> None:
    """A page in which all tags are nested gives one, be its translation nonsense."""
    numbers = itertools.count()
    page = re.sub(r"<\w+", lambda tag: f"{tag[0]} id={next(numbers)}", "".join(map(write_tree, trees)))
    read = HtmlPage(page, split, "en")
    dice = random.Random(seed)
    written = read.write([scramble(sentence, dice) for sentence in read.sentences])
    assert list_parents(written) == list_parents(page)


@pytest.fixture(scope="module")
def translator(tmp_path_factory: pytest.TempPathFactory) -> Translator:
    return load(write_small_package(tmp_path_factory.mktemp("package")), "cpu")


@given(page=SOUP)
def test_a_model_translates_any_page(translator: Translator, page: str) -> None:
    """Its tokenizer rewrites some words, which are then not found in the page: no reason to fail."""
    translated = translate_html(translator, page)
    assert not list_tags(page) - list_tags(translated)
    assert is_added_by_nesting(list_added(page, translated), page)
