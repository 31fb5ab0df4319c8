"""Tags in translations whose alignment is under control."""

import re
import time

import pytest

from convs2s.html.draft import Traced, TranslatedSentence, Word
from convs2s.html.inline_tags import write_segment
from convs2s.html.segments import Segment, read_page


def reverse(sentence: str) -> Traced:
    """Return the words in capitals and in reverse order; a word may have punctuation, which stays in it."""
    words = list(re.finditer(r"\S+", sentence))[::-1]
    return trace(" ".join(word[0].upper() for word in words), [[word.start()] for word in words])


def trace(text: str, origins: list[list[int]]) -> Traced:
    """Return a translation, given for each of its words the places that it comes from."""
    words = re.finditer(r"\S+", text)
    return Traced(text, [Word(*word.span(), of) for word, of in zip(words, origins, strict=True)])


def link(sentence: str, translation: str) -> Traced:
    """Return a translation whose words are written WORD=SOURCE+SOURCE; a word without sources is unlinked."""
    places = [word.start() for word in re.finditer(r"\S+", sentence)]
    numbered = [word.partition("=") for word in translation.split()]
    origins = [[places[int(number)] for number in numbers.split("+") if number] for _, _, numbers in numbered]
    return trace(" ".join(word for word, _, _ in numbered), origins)


def write(page: str, *translations: str) -> str:
    """Return a page with translations as `link` reads them; without any, each segment is reversed.

    A segment has as many sentences as there are translations; sentences end with a period.
    """
    written = ""
    for part in read_page(page):
        if isinstance(part, str):
            written += part
        elif translations:
            spans = [found.span() for found in re.finditer(r"[^.\s][^.]*\.?", part.text)]
            sentences = [
                TranslatedSentence(start, stop, link(part.text[start:stop], translation))
                for (start, stop), translation in zip(spans, translations, strict=True)
            ]
            written += write_segment(part, sentences, "en")
        else:
            written += write_segment(part, [TranslatedSentence(0, len(part.text), reverse(part.text))], "en")
    return written


@pytest.mark.parametrize(
    ("page", "reversed_page"),
    [
        ("<p> one <b>two</b> three </p>", "<p> THREE <b>TWO</b> ONE </p>"),
        ("<b>one two</b>", "<b>TWO ONE</b>"),
        ("one<b> two </b>three", "THREE<b> TWO </b>ONE"),
        ("<i>one <b>two</b> three</i> four", "FOUR <i>THREE <b>TWO</b> ONE</i>"),
        ("<i><b>one</b></i> <u>two</u>", "<u>TWO</u> <i><b>ONE</b></i>"),
        ("one <a href='>'>two</A\n> three", "THREE <a href='>'>TWO</A\n> ONE"),
        ("one &lt;two&gt; &amp; <b>&quot;three&quot;</b>", "<b>\"THREE\"</b> &amp; &lt;TWO&gt; ONE"),
        # objects keep their order, as Translator puts them back; so do sentences, breaks and what is copied
        ("one <code>a</code> two <img> three", "THREE <code>a</code> TWO <img> ONE"),
        ("one <b><code>a</code> two</b> three", "THREE <b>TWO <code>a</code></b> ONE"),
        ("one <b><code>a</code> two</b> <code>b</code>", "<b><code>a</code> TWO</b> <code>b</code> ONE"),
        ("one <!-- a --> two three", "THREE <!-- a -->TWO ONE"),
        ("one two <b></b> <i>three <!-- a --></i>", "<b></b> <i>THREE<!-- a --> </i>TWO ONE"),
        ("<b><!-- a -->one</b> two", "TWO <b><!-- a -->ONE</b>"),
        ("o<wbr>ne two", "<wbr>TWO ONE"),
        # inside a word: where most of it is
        ("<b>o</b>ne <i>tw</i>o", "<i>TWO</i> <b>ONE</b>"),
        ("on<b>e</b> t<i>wo</i>", "<i>TWO</i> <b>ONE</b>"),
        # badly nested: as browsers nest them
        ("one <b>two <i>three</b> four</i>", "<i>FOUR</i> <b><i>THREE</i> TWO</b> ONE"),
        ("one <b>two <i>three</b></i> four", "FOUR <b><i>THREE</i> TWO</b> ONE"),
        ("<a href=x>one <a href=y>two</a> three", "THREE <a href=y>TWO</a> <a href=x>ONE</a>"),
        ("<b>one <span>two</b> three</span>", "THREE <b><span>TWO</span> ONE</b></span>"),
        # white space stays inside of an element, or outside
        ("one <b> two </b> three", "THREE <b>TWO</b> ONE"),
        ("one<b><i> two</i></b> three", "THREE<b><i> TWO</i></b> ONE"),
        ("one <b><i>two </i></b>three", "THREE <b><i>TWO </i></b>ONE"),
        ("one <b>two<i> </i></b> three", "THREE <b>TWO<i> </i></b> ONE"),
        ("one<b>&nbsp;two</b> three", "THREE<b> TWO</b> ONE"),
        ("<a><i></i>a </a> <b> two</b> three", "THREE <b>TWO</b> <a><i></i>A</a>"),
        # not closed: divides
        ("one two <b>three four", "TWO ONE <b>FOUR THREE"),
        # elements that hold a space
        ("one<b> </b>two", "<b> </b>TWO ONE"),
        ("one two<b>&nbsp;</b>three", "<b>&nbsp;</b>THREE TWO ONE"),
        ("one <span translate=no>a b</span> two", "TWO <span translate=no>a b</span> ONE"),
        ("one\u00a0<b>two</b> 🙂", "🙂 <b>TWO</b> ONE"),
        # elements that may be icons keep their distance
        ("<a><i></i> one</a> two", "TWO <a><i></i> ONE</a>"),
        ("one <i></i> <b>two</b>", "<i></i> <b>TWO</b> ONE"),
    ],
)  # fmt: skip
def test_tags_follow_their_words(page: str, reversed_page: str) -> None:
    """The words of each segment are in reverse order, so every element has to move."""
    assert write(page) == reversed_page


@pytest.mark.parametrize(
    ("page", "translations", "written"),
    [
        # mistakes of the attention
        ("a <b>black dog</b> barks", ["ein=0 schwarzer=1 Hund=2 bellt=3"], "ein <b>schwarzer Hund</b> bellt"),
        ("a <b>black dog</b> barks", ["ein=2 großer= Hund=1 bellt=3"], "<b>ein großer Hund</b> bellt"),
        ("see <b>a dog</b> here", ["sehe=0 hier=2 einen=1 Hund=2"], "sehe <b>hier einen Hund</b>"),
        ("he <b>starts</b> now", ["er=0 fängt=1 jetzt=2 an=1"], "er <b>fängt jetzt an</b>"),
        ("he <b>starts</b> only now", ["er=0 fängt=1 erst=2 jetzt=3 an=1"], "er <b>fängt</b> erst jetzt an"),
        ("a <b>b</b> <i>c</i>", ["B=1 C=2 B=1 B=1"], "B <i>C</i> <b>B B</b>"),
        ("a <b>boat</b> house", ["ein=0 Hausboot=1+2"], "ein <b>Hausboot</b>"),
        ("a <b>big house</b> boat", ["ein=0 großes=1 Hausboot=3+2+1"], "ein <b>großes Hausboot</b>"),
        # what has no origin: in the element that all words were in
        ("<a>a dog</a> <img>", ["Ein=0 Hund=1 .= *="], "<a>Ein Hund .</a> <img>"),
        ("<a>a</a>, <b>b</b>", ["A=0 B=1 .="], "<a>A</a> <b>B</b> ."),
        # elements without words: near what they were near
        ("in <b>Rome</b> today", ["heute=2 in=0 Rom="], "<b>heute</b> in Rom"),
        ("in <b>Rome</b> <i>today</i>", ["heute=2 in=0 Rom="], "<i>heute</i> in <b>Rom</b>"),
        ("in <b>Rome</b>", ["in=0 Rom="], "in <b>Rom</b>"),
        ("<b>one</b> <i>two</i> <u>three</u>", ["eins= zwei="], "<b>eins</b> <i>zwei</i><u></u>"),
        ("<b>one <i>two</i></b>", [""], "<b><i></i></b>"),
        ("<b><img> a <img></b> <i>b</i>", ["*= B=3 *= A=1"], "<b><img> B <img> A</b><i></i>"),
        # points: not in an element that they were not in
        ("<b>a b</b> <!-- x -->c", ["A=0 C=2 B=1"], "<b>A C B</b><!-- x -->"),
        ("d <!-- x -->c <b>a b</b>", ["D=0 A=2 C=1 B=3"], "D <!-- x --><b>A C B</b>"),
        ("<b>a</b> b<!-- x --> c", ["B=1 A=0"], "B <b>A</b><!-- x -->"),
        # sentences
        ("a. <b>b.</b> c.", ["A.=0", "B= !=", "C.=0"], "A. <b>B !</b> C."),
        ("a <b>b. c</b> d.", ["B=1 A.=0", "D=1 C.=0"], "<b>B</b> A. D C."),
        ("<i>a. b <b>c.</b></i> d.", ["A.=0", "C=1 B=0", "D.=0"], "<i>A. <b>C</b> B</i> D."),
        ("a.<br>\nb <b>c.</b>", ["A.=0", "C=1 B.=0"], "A.<br>\n<b>C</b> B."),
        ("<b>a.<br>b</b> c.", ["A.=0", "C=1 B.=0"], "<b>A.<br>C B.</b>"),
        ("a. <!-- x -->b c.", ["A.=0", "C=1 B.=0"], "A. <!-- x -->C B."),
        ("a b c <b>d.</b> e.", ["A=0 B=1 C=2", "E.=0"], "A B <b>C</b> E."),
        # without a space between them
        ("<a>b c.</a><a>d e.</a>", ["C=1 B.=0", "E=1 D.=0"], "<a>C B.</a><a>E D.</a>"),
        ("a<b> </b>b c", ["A=0 B=1 C=2"], "A<b> </b>B C"),
        ("a<b> </b> b c", ["A=0 B=1 C=2"], "A<b> </b> B C"),
        ("a.<sup>[1]</sup> b", ["A.=0", "*=0 B=1"], "A.<sup>[1]</sup> B"),
        # parts of words that are the same stay, also with digits; else they are around the word
        ("12<b>kg</b> and 5<i>cm</i>", ["12kg=0 und=1 5cm=2"], "12<b>kg</b> und 5<i>cm</i>"),
        ("a 21<sup>st</sup> score 3:<b>2</b>", ["A=0 21st=1 3:2=3 S=2"], "A 21<sup>st</sup> 3:<b>2</b> S"),
        ("a 21<sup>st</sup> c", ["A=0 21.=1 C=2"], "A <sup>21.</sup> C"),
        ("a 12<b>kg</b>", ["A=0 12KG=1"], "A <b>12KG</b>"),
        # objects that a translation lost or repeats
        ("a <img> <b>b</b>", ["A=0 B=2"], "A  <img> <b>B</b>"),
        ("a <b>b <img></b>", ["B=1 A=0"], "<b>B <img> </b> A"),
        ("a <img>", ["*= A=0 *= *="], "<img> A  "),
    ],
)  # fmt: skip
def test_tags_are_placed_by_links(page: str, translations: list[str], written: str) -> None:
    """Each element goes around most of its words; every tag is written, whatever the links are."""
    assert write(page, *(translation.replace("*", "￼") for translation in translations)) == written


@pytest.mark.parametrize(
    "pieces",
    [
        ("<b>x</b> ", ""),
        ("<b>x ", "</b>"),
        ("<b>x</b> <!-- x -->", ""),
        ("<code>x</code> x ", ""),
        ("x<br>", ""),
        ("<i>x <b></b></i> ", ""),
        ("<a>x ", "</a>"),
        ("<a>Home</a><a>News</a>", ""),
        ("<b><i>x</b> y</i> ", ""),
        ("x<i> </i>", ""),
        ("<i></i>x ", ""),
        ("x", "<b>y</b>"),
    ],
)
def test_placing_takes_linear_time(pieces: tuple[str, str]) -> None:
    """Even in one sentence as long as a page, with an element for each word, nested or side by side."""

    def measure(count: int) -> float:
        page = pieces[0] * count + pieces[1] * count
        begin = time.process_time()
        write(page)
        return time.process_time() - begin

    # The longer takes 10 times as long, and would take 100 times.
    assert measure(4000) < 40 * measure(400) + 0.05


@pytest.mark.parametrize(("step", "end"), [(4, None), (2, 2), (2, 200)])
def test_placing_lost_elements_takes_linear_time(step: int, end: int | None) -> None:
    """Half of the elements have lost their words, or all but a few; each seeks a place, beside all others."""

    def measure(count: int) -> float:
        [_, segment, _] = read_page("<i>x</i> " * count)
        assert isinstance(segment, Segment)
        places = [place % (end or 2 * count) for place in range(0, 2 * count, step)]
        translation = trace(" ".join("X" for _ in places), [[place] for place in reversed(places)])
        begin = time.process_time()
        write_segment(segment, [TranslatedSentence(0, len(segment.text), translation)], "en")
        return time.process_time() - begin

    assert measure(10_000) < 40 * measure(1000) + 0.05


@pytest.mark.parametrize(
    ("page", "translation", "written", "emptied"),
    [
        # A word nearby that is nobody's, or one of a sibling that has others.
        ("x <a>one</a> y z", "X=0 Y=2 Z=3", "X <a>Y</a> Z", 0),
        ("<a>one</a> x <a>two</a>", "X=1 Eins=0", "<a>X</a> <a>Eins</a>", 0),
        ("<u>one</u> <a>two</a>", "Eins=0 zwei=0", "<u>Eins</u> <a>zwei</a>", 0),
        ("<u>one</u> <a>two</a>", "Eins=1 zwei=1", "<u>Eins</u> <a>zwei</a>", 0),
        ("<i>a</i> <i>b</i> <i>c</i>", "A=0 A=0 B=1 A=0", "<i>A A</i> <i>B</i> <i>A</i>", 0),
        # Not its only one; elements without a word have none to lose.
        ("<i>dog</i> <i>dog</i> <i>dog</i>", "Hund=0 Hund=0", "<i>Hund</i> <i>Hund</i><i></i>", 1),
        # However far, as long as the sentence has enough words.
        ("<i>dog</i> " * 60, "Hund=0 " * 60, ("<i>Hund</i> " * 60).rstrip(), 0),
        ("<i>dog</i> " * 60, "Hund= " * 60, ("<i>Hund</i> " * 60).rstrip(), 0),
        ("<i>dog</i> " * 60, "Hund=59 " * 30 + "Hund=0 " * 30, ("<i>Hund</i> " * 60).rstrip(), 0),
        (
            "<b>a b</b>" + " <i>x</i>" * 9 + " <u>c</u>",
            "A=0 B=1" + "".join(f" X={i}" for i in range(2, 11)),
            "<b>A</b> <u>B</u>" + " <i>X</i>" * 9,
            0,
        ),
        (
            "<u>c</u>" + " <i>x</i>" * 9 + " <b>a b</b>",
            "".join(f"X={i} " for i in range(1, 10)) + "A=10 B=11",
            "<i>X</i> " * 9 + "<u>A</u> <b>B</b>",
            0,
        ),
        ("<a>one <i>two</i></a> x", "", "<a><i></i></a>", 2),
        ("one <b>12</b> <i>!</i>", "Eins=0", "<b>Eins</b><i></i>", 0),
        ("one <i>two</i>", "12=0 !=1", "12 <i>!</i>", 1),
    ],
)
def test_emptied_elements_take_a_word_or_are_counted(
    page: str, translation: str, written: str, emptied: int
) -> None:
    """A link or a button without text cannot be used."""
    counts = list[int]()
    [_, segment, _] = read_page(page)
    assert isinstance(segment, Segment)
    sentence = TranslatedSentence(0, len(segment.text), link(segment.text, translation))
    assert write_segment(segment, [sentence], "en", counts.append) == written
    assert counts == [emptied]
