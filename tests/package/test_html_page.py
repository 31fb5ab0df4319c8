"""Pages through translators: one that repeats its source, and a small model."""

import re
from pathlib import Path

import pytest

from convs2s.html.draft import Traced, Word
from convs2s.package.html_page import HtmlPage, TranslatedPage, read_html, trace, translate_html
from convs2s.package.translator import Translator, load
from convs2s.text.words.tokenization import Tokenizer
from tests.decode.parrot import TOKENIZE, word_parrot, write_vocabulary
from tests.package.small_package import write_small_package


@pytest.fixture
def parrot(tmp_path: Path) -> Translator:
    """Return a translator that repeats words, and attends to the word that it repeats."""
    tokenizer = Tokenizer("de", TOKENIZE)
    return Translator(word_parrot(write_vocabulary(tmp_path)), tokenizer, tokenizer, {})


@pytest.mark.parametrize(
    "page",
    [
        "<p>Das <b>ist</b> ein Haus.</p>",
        "<p> Das <b>ist <i>ein</i></b> <a href=x>Haus</a>. <!-- Das ist -->Und noch eins. </p>",
        "<title>Das Haus</title><script>ein Haus</script><pre>ein\n Haus</pre> &nbsp; 12",
        "Das <code>ist</code> ein <img src=x>, ein <b>Haus <code>und</code></b> (<code>noch</code>).",
        "Das ist <span translate=no>ein Haus</span>.<br>\nUnd <b>noch</b> eins, <u>ein Haus</u>.",
        "",
        "<img>",
    ],
)
def test_a_page_is_translated_with_its_tags(parrot: Translator, page: str) -> None:
    """A translator that changes nothing gives the page back: its words are found again, and their places."""
    assert translate_html(parrot, page) == page


def test_no_model_sees_objects(tmp_path: Path) -> None:
    """A vocabulary of words has `<unk>` for them, which attention would replace, or not."""
    tokenizer = Tokenizer("de", TOKENIZE)
    translator = Translator(word_parrot(write_vocabulary(tmp_path)), tokenizer, tokenizer, None)
    assert translator.read("Das ￼ ist.")[0].seen == ["Das", "ist", "."]
    page = "<p>Das <code>ist</code> ein <b>Haus <img></b>.</p>"
    assert translate_html(translator, page) == page


def test_several_pages_are_translated_together(parrot: Translator) -> None:
    """A string gives a string; each page gets its own sentences, which the bar of a command counts."""
    pages = ["<b>ein</b> Haus. Und <i>noch</i> eins.", "", "<p>12</p>", "<p>ein Hund\ud800</p>"]
    done: list[int] = []
    translated = translate_html(parrot, pages, on_done=done.append)
    assert translated == [*pages[:3], "<p>ein Hund?</p>"]
    assert sum(done) == sum(len(read_html(parrot, page).sentences) for page in pages) == 3
    assert translate_html(parrot, pages[0]) == pages[0]
    assert len(read_html(parrot, pages[0], split_sentences=False).sentences) == 1


@pytest.mark.parametrize(
    ("page", "sentences", "written"),
    [
        ("<p>My dog<i hidden> is old</i> is big.</p>", ["My dog is big.", "is old"],
         "<p>MY DOG <i hidden> IS OLD</i>IS BIG.</p>"),
        ("<b><i style='display:none'>One</i></b> two", ["One", "two"],
         "<b><i style='display:none'>ONE</i></b> TWO"),
        ("<i hidden>One <b hidden>two</b></i><p>three", ["One two", "three"],
         "<i hidden>ONE <b hidden>TWO</b></i><p>THREE"),
        ("One <i hidden>two<p>three</i> four", ["One four", "two", "three"],
         "ONE <i hidden>TWO<p>THREE</i>FOUR"),
        ("One <i hidden>two", ["One", "two"], "ONE <i hidden>TWO"),
    ],
)  # fmt: skip
def test_text_that_is_not_seen_is_no_part_of_the_sentence(
    page: str, sentences: list[str], written: str
) -> None:
    """A script may show it later, so it is translated, too."""
    read = HtmlPage(page, lambda text: [text], "en")
    assert read.sentences == sentences
    translations = [
        Traced(text.upper(), [Word(*word.span(), [word.start()]) for word in re.finditer(r"\S+", text)])
        for text in read.sentences
    ]
    assert read.write(translations) == written


@pytest.mark.parametrize(
    "page",
    [
        "READ<a><b> MORE</b><p>NOW</p></a>",
        "A<i><u> B. C</u> D<div>E</div></i>",
        "<p><b> ONE</b> TWO",
        "<b> 1</b>",
    ],
)
def test_white_space_before_a_text_stays_in_its_element(page: str) -> None:
    """Where a tag without its counterpart divides a sentence, it is seen: `READ` and `MORE` are two words."""
    read = HtmlPage(page, lambda text: [text], "en")
    translations = [
        Traced(text, [Word(*word.span(), [word.start()]) for word in re.finditer(r"\S+", text)])
        for text in read.sentences
    ]
    assert all(text == text.strip() for text in read.sentences)
    assert read.write(translations) == page


@pytest.mark.parametrize(
    ("page", "language", "written"),
    [
        ("<p>好。　好。 <b>好。</b>好。</p>", "zh", "<p>好。　好。 <b>好。</b>好。</p>"),
        ("<p>[公告] 好。 好。</p>", "ja", "<p>[公告] 好。 好。</p>"),
        ("<p>好。　好。好。</p>", "de", "<p>好。 好。 好。</p>"),
        ("<p>One. Two.</p>", "ja", "<p>One.Two.</p>"),
    ],
)
def test_a_space_in_a_chinese_page_stays_in_a_chinese_one(page: str, language: str, written: str) -> None:
    """A script without spaces between sentences has one on purpose."""
    read = HtmlPage(page, lambda text: re.findall(r"\[[^]]*\] |.*?[.。]\s*", text), language)
    words = (re.finditer(r"\S+", text) for text in read.sentences)
    translations = [
        Traced(text, [Word(*word.span(), [word.start()]) for word in found])
        for text, found in zip(read.sentences, words, strict=True)
    ]
    assert read.write(translations) == written


def test_the_space_between_sentences_is_that_of_the_target_language(parrot: Translator) -> None:
    """Japanese has none, which the HTML of other languages needs, and the other way round."""
    parrot.target.language = "ja"
    assert translate_html(parrot, "ein Haus. <b>noch eins.</b>") == "ein Haus.<b>noch eins.</b>"


JAPANESE = "猫は家の中で寝ています。"


@pytest.mark.parametrize(
    "page",
    [
        "<p>猫は<b>家の中で</b>寝ています。</p>",
        "<p><b>猫</b>は<a href=x>家の<i>中</i>で</a>寝て<u>います</u>。<b>猫は</b>家。</p>",
        "<p>猫は<code>x</code>家の<b>中で寝</b>ています。</p>",
    ],
)
def test_tags_are_placed_between_pieces_where_words_have_no_spaces(tmp_path: Path, page: str) -> None:
    """To the tokenizer a Japanese sentence is one word, around which all of its tags would go."""
    folder = write_vocabulary(tmp_path, [JAPANESE], pieces=len({*JAPANESE}) + 1)
    tokenizer = Tokenizer("ja", TOKENIZE.model_copy(update={"tokenizer": "spaces"}))
    translator = Translator(word_parrot(folder), tokenizer, tokenizer, None)
    assert translate_html(translator, page) == page


def test_words_have_the_places_that_they_come_from(tmp_path: Path) -> None:
    """Also those that the model never saw, such as a name in another script or an emoji.

    Objects are not reported as unknown characters.
    """
    translator = load(write_small_package(tmp_path), "cpu")
    sentence = "ein Haus, Łódź und ￼ 🙂."
    [[best, *_]] = translator.translate_n_best(sentence)
    traced = trace(translator, sentence, best)
    assert traced.text == best.text
    assert traced.unknown_characters == best.unknown_characters - 1 > 0
    copied = {traced.text[word.start : word.stop].strip(".,"): list(word.origins) for word in traced.words}
    assert [sentence[origin] for origin in copied["Łódź"]] == ["d"]
    places = {sentence.index(text) + len(text) // 2 for text in ("ein", "Haus", "Łódź", "und")}
    assert {place for word in traced.words for place in word.origins} <= places | set(range(8, len(sentence)))


def test_elements_that_have_lost_their_words_are_counted(parrot: Translator) -> None:
    """Only in the translation that is written first."""
    page = read_html(parrot, "<p><i>Hund</i> <i>Hund</i></p><p><b>Haus</b></p>")
    lost = Traced("Hund", [Word(0, 4, [0])])
    kept = Traced("Haus", [Word(0, 4, [0])])
    translated = TranslatedPage(page, [[lost, kept], [kept]])
    assert translated.emptied_elements == 1
    assert translated.of_rank(0) == "<p><i>Hund</i><i></i></p><p><b>Haus</b></p>"
    assert translated.of_rank(1) == "<p><i>Haus</i><i></i></p><p><b>Haus</b></p>"
