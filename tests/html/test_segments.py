"""What of a page is translated, and that the rest of it stays as it is."""

import time

import pytest

from convs2s.html.segments import BREAK, read_page
from convs2s.html.tokens import tokenize
from convs2s.text.words.tokenization import OBJECT


def show(page: str) -> str:
    """Return a page with the text of its segments in brackets, in which * is an object and / a break."""
    shown = ""
    for part in read_page(page):
        if isinstance(part, str):
            shown += part
        else:
            shown += f"[{part.text.replace(OBJECT, '*').replace(BREAK, '/')}]"
    return shown


@pytest.mark.parametrize(
    ("page", "shown"),
    [
        # blocks, and the white space around their text
        ("<ul>\n <li>One</li> <li> two\n </li></ul>", "<ul>\n <li>[One]</li> <li> [two]\n </li></ul>"),
        ("<p>One<p>two<dd>three</dd>", "<p>[One]<p>[two]<dd>[three]</dd>"),
        ("&nbsp; One&#160;<!-- x -->", "&nbsp; [One]&#160;<!-- x -->"),
        ("One\n  two\tthree", "[One two three]"),
        ("<td>12.5</td><td>&nbsp;</td><td>—</td>", "<td>12.5</td><td>&nbsp;</td><td>—</td>"),
        ("<td>2026-11-29T08:00:00Z</td><td>A4, x_1</td>",) * 2,
        ("<td>3<!-- x -->A</td>",) * 2,
        ("<td>A<br>3</td>", "<td>[A/3]</td>"),
        ("<td>3つ</td><td>4 A</td>", "<td>[3つ]</td><td>[4 A]</td>"),
        # inline elements, objects, breaks
        ("A <b>b <i> c</i></b> <u>d</u>", "[A b c d]"),
        ("<P><B>A</b></P>", "<P>[A]</P>"),
        ("A<br>\n b <BR/>c", "[A/b /c]"),
        ("A <img src=x> b <code>c <i>d</i></code>.", "[A * b *.]"),
        ("A <b></b> b <a id=x></a>", "[A b] <a id=x></a>"),
        ("A <a href=x><code>b</code></a> <i><img></i> <i><br></i> c", "[A * * / c]"),
        ("Da<wbr>ten da<!-- x -->ten da&shy;ten", "[Daten daten daten]"),
        ("A<sup>2</sup>, the 5<sup>th</sup> <sup><a href=x>[1]</a></sup>", "[A*, the 5th *]"),
        ("<ruby>漢字<rp>(</rp><rt>かんじ</rt><rp>)</rp></ruby>です", "[漢字***です]"),
        # what must not be translated
        ("A <a href=x><i>https://</i><b>b.org/c</b></a> <a>b@c.org</a> <a>@b c</a>", "[A * * @b c]"),
        ("<pre>A\n b</pre><script>if (a<b) c</script><style>a</style>",) * 2,
        ("A <span translate=no>b <b>c</b></span> <i class='x NoTranslate'>d</i>.", "[A * *.]"),
        ('<div TRANSLATE = "No"><p>A</div>b', '<div TRANSLATE = "No"><p>A</div>[b]'),
        ("<li translate=no>A <b>b</b><li>c", "<li translate=no>A <b>b</b><li>[c]"),
        ("<i title='translate=no' data-translate=no translate=yes>A</i>", "[A]"),
        ("<textarea><b>A</b></textarea> <svg><title>A</title></svg> b", "[* * b]"),
        # characters and references
        ("&lt;a&gt; &amp;amp; &notin; &copy 1 < 2 & 3", "[<a> &amp; ∉ © 1 < 2 & 3]"),
        ("A &#x80; &#0; &#55555555;", "[A € � �]"),
        (f"A &#{'9' * 5000}; &#{'0' * 5000}65;", "[A � A]"),
        ("A ￼ &#xfffc;", "[A * *]"),
        # tags as browsers read them
        ('<a title=">" alt=\'>\' "x>A</a >', "[A]"),
        ("<a =\">A</a><b/ >c</b>", "[Ac]"),
        ("<!DOCTYPE html><!-- <p>A --><?x <p ?><![CDATA[ b ]]>",) * 2,
        ("<!-->A<!--->b<!--c--!>d</>e</ f>g", "<!-->[Abdeg]"),
        ("<SCRIPT>A</SCRIPTS></script\n>b", "[*b]"),
        # what is broken
        ("<b>A <i>b<p>c</b> d</i>", "<b>[A] <i>[b]<p>[c]</b> [d]</i>"),
        ("<b>A<p>b</b>c</p></i>", "<b>[A]<p>[b]</b>[c]</p></i>"),
        ("A <a id=x/> b <a href=y/>c</a> <a id='z'/>", "[A b c] <a id='z'/>"),
        ("A <b><a id=x /></b> <code>b <p>c</code>", "[A *]"),
        ("A </br> </code> b", "[A / b]"),
        # elements that pages part without a space
        ("<a>Home</a><a>News</a><a>A</a>", "[Home/News/A]"),
        ("<a>Home</a><img><a>News</a>", "[Home*News]"),
        ("<span>My brother</span><span>My sister</span>", "[My brother/My sister]"),
        ("<i><span>my brother</span></i><b><span>my sister</span></b>", "[my brother/my sister]"),
        ("<b>Author:</b><i>John</i><span>12 May</span>", "[Author:/John/12 May]"),
        ("<a>A title<span>Its source</span></a><b>You<span>Tube</span></b>", "[A title/Its source/YouTube]"),
        ("<button>Save</button><button>Cancel</button>or", "[Save/Cancel/or]"),
        ("<a>1</a><a>2</a><a>Next</a>", "[1/2/Next]"),
        ("<a>首页</a><a>新闻</a>", "[首页/新闻]"),
        ("<b>I</b>t <span>w</span><span>as</span> <b>un</b><i>like</i>ly", "[It was unlikely]"),
        ("<span>A</span><span>.</span> <a>b</a><sup>c</sup> <b>猫</b><span>猫</span>", "[A. bc 猫猫]"),
        ("<i>Da</i><wbr><span>ten</span>", "[Daten]"),
        ("By<a>John</a> Tags:<a>cats</a> <b>Note:</b>Do it.", "[By/John Tags:/cats Note:/Do it.]"),
        ("U.<b>S</b>. <b>Hi.</b>So <span>it is.</span><a>so</a>", "[U.S. Hi./So it is./so]"),
        ("www.<a>example</a>.org 12:<span>30</span>", "[www.example.org 12:30]"),
        ("More<span>3</span> 12<i class=x><u>comments</u></i><a>5</a> by Tom<a>22 May</a>",
         "[More/3 12comments/5 by Tom22 May]"),
        ("12<span>comments</span> CO<span>2</span> 30<span>th</span>", "[12/comments CO2 30th]"),
        ("<i>A</i><span>$12</span><span>(net)</span><span>“B”</span><a>C</a>", "[A/$12/(net)/“B”/C]"),
        ("<i>a</i><b>(b)</b> <span>c</span><span>[1]</span> <span>f</span><span>(</span>", "[a(b) c[1] f(]"),
        ("<a>This</a><sup>1</sup> <a>that</a><sup><a>[x]</a></sup>", "[This* that[x]]"),
        ("<a>Home<a>News<a>Sport</a>", "[Home/News/Sport]"),
        ("for <del>ten</del><ins>two</ins> <del>c</del><ins>k</ins>at", "[for ten/two ckat]"),
        # parts of a form, and links with a separator
        ("<button>A</button> <button> B</button> or <button>C</button>", "[A/ B or C]"),
        ("<label>A</label><input> <label>B</label> c <label>d</label>", "[A/* B c d]"),
        ("<label>A</label> <input> <button>B</button><label>c</label>", "[A/* B/c]"),
        ("<label><input>A</label> <!-- x --> <label><input> B</label>", "[*A/ * B]"),
        ("A: <a>B</a> | <a>C</a>&middot;<a>D</a> &gt; <a>E</a> <a>f</a>", "[A: B/C/D/E f]"),
        ("<b><a>A</a>\n<a><img> B</a></b> | <a> C</a>", "[A/* B/ C]"),
        ("<a>A</a> and <a>b</a> <a>c</a>", "[A and b c]"),
        ("<i><a>A</a> </i>\n<i> <a>B</a> |</i> <a>C</a> <u></u> <a>D</a>", "[A / B/ C /D]"),
        ("<a>A</a> <u><img></u> <a>B</a>", "[A * B]"),
        ("<i><a>A</a></i>|<i><a>B</a></i> | b <a>C</a> - <a>D</a> |<b>e</b>", "[A/B | b C - D |e]"),
        ("<a>A</a> <img> | <a>B</a> |<a>C<br></a>|<a>d</a>", "[A * | B/C//d]"),
        # unless they are parts of a sentence
        ("I went from <a>Berlin</a> → <a>Paris</a> by train.", "[I went from Berlin → Paris by train.]"),
        ("Use <a>File</a> &gt; <a>Open</a> to open it.<br>See: <a>A</a> » <a>B</a> » <a>c</a>",
         "[Use File > Open to open it./See: A/B/c]"),
        ("<a>A</a> &gt; <a>B</a> has it.<br><a>A</a> &gt; <a>B</a> &gt; this page",
         "[A > B has it./A/B > this page]"),
        ("<p><a>I like dogs</a> <a>and cats</a>.</p> <a>The dog</a> <a>Rex is big.</a>",
         "<p>[I like dogs and cats.]</p> [The dog Rex is big.]"),
        ("<a>Mac</a> <a>iPad</a> <a>More...</a><br><a>12</a> <a>It is so.</a>",
         "[Mac/iPad/More.../12/It is so.]"),
        ("<a>English</a> <a>français</a> <a>Deutsch</a><br><a>A</a> → <a>B</a> | see all",
         "[English/français/Deutsch/A/B | see all]"),
        ("<a>A<br>B</a> <a>C<br>d</a> <a>home</a> <a>news</a>", "[A/B/C/d/home/news]"),
        ("I have <span>3</span>dogs. <b>x</b><span>3</span>Dogs<br><span>4</span>cats",
         "[I have 3dogs. x3/Dogs/4/cats]"),
        # what the attribute style says of the layout
        ("<b style='color:red;DISPLAY: block'>A</b>b", "<b style='color:red;DISPLAY: block'>[A]</b>[b]"),
        ('<b style="display:inline-block">A</b>b <i style=x-display:block>c</i>', "[Ab c]"),
        ("A <img style='display:block'>b", "[A] <img style='display:block'>[b]"),
        ("<div style=display:inline>A</div> <div style=display:inline>b</div>", "[A b]"),
        ("<li style=display:inline>A</li>b", "<li style=display:inline>[A]</li>[b]"),
        ("<p style='white-space:pre-line'>A\n b <i>c\r\nd</i></p>e\nf",
         "<p style='white-space:pre-line'>[A/b c/d]</p>[e f]"),
        ("<p style='white-space:pre'>A <i style='white-space:normal'>b\nc</i>\nd</p>",
         "<p style='white-space:pre'>[A b c/d]</p>"),
        ("<p style='white-space:pre-wrap'>  A b   c\td  \n e&#10;f&#x0A; g  </p>",
         "<p style='white-space:pre-wrap'>  [A b/c/d/e/f/g]  </p>"),
        ("<p style='white-space:pre-line'>A  b\tc&#10;d</p>",
         "<p style='white-space:pre-line'>[A b c/d]</p>"),
        # blocks that are not seen
        ("One <div hidden>two</div> three", "[One three]"),
        ("<div>One <p style=display:none>two</p>three</div>", "<div>[One three]</div>"),
        ("<p>One <div hidden>two</div> three", "<p>[One] <div hidden>[two]</div> [three]"),
        ("<div hidden>One <i hidden>two</i> three</div>", "<div hidden>[One three]</div>"),
        ("<li>One <li hidden>two</li> three", "<li>[One] <li hidden>[two]</li> [three]"),
        ("<tr><td>One<td hidden>two</td><td>three", "<tr><td>[One]<td hidden>[two]</td><td>[three]"),
        # white space in an element without text
        ("A<b> </b>b<i>&nbsp;</i>c<u></u>d <s> </s> e", "[A b cd e]"),
        # elements that no browser makes a block
        ("A <x-y>b</x-y> <o:p></o:p><output>c</output> <slot>d</slot> <button>e</button>", "[A b c d e]"),
        ("A <meta itemprop=x><link>b<noscript><img></noscript> c", "[A b c]"),
        ("A <noscript>b</noscript> c", "[A] <noscript>[b]</noscript> [c]"),
        # XHTML's objects
        ("<p>A <svg/> b <svg><path/></svg> c <math/> d", "<p>[A * b * c * d]"),
        ("<p>A <code/> b <video src=x /> c</p><code>d</code>", "<p>[A * b * c]</p><code>d</code>"),
        ("<p>A <svg><svg/></svg> b", "<p>[A * b]"),
        # what only some browsers show
        ("A <progress>b</progress> <meter>c</meter> d", "[A * * d]"),
        # templates
        ("A <?php echo $a->b; ?> <?= $x > 1 ?> b <%= c > d %>.", "[A * * b *.]"),
        ("<?php if (a->b): ?><p>A</p><?php endif ?>", "<?php if (a->b): ?><p>[A]</p><?php endif ?>"),
        ("A <% b <?php c <%x%> <b title='<?= d->e ?>'>f</b>", "[A <% b f]"),
        # scripts that write scripts
        ("<script><!--<script>a</script>A--></script>b", "[*b]"),
        ("<script><!--<script>a</script>A", "<script><!--<script>a</script>A"),
        ("<script><!--a</script>b", "[*b]"),
        ("<script><!--><script></script>b", "[*b]"),
        # badly nested
        ("<b>A <i>b</b> c</i> <span>d <u>e</span> f</u> </span>g", "[A b c d e f g]"),
        ("<a>A <a>b</a> c</a> d", "[A b c d]"),
        ("<b><i><u><s>A</b>b</s></u></i> c", "[Ab c]"),
        ("<b><i><u><s><a>A</b>b</a></s></u></i> c", "<b><i><u><s><a>[A]</b>[b]</a></s></u></i> [c]"),
        ("A <b <p>b", "[A] <b <p>[b]"),
        ("A <textarea>b", "[A] <textarea>b"),
        ("A <code>b<p>c", "[A] <code>b<p>[c]"),
        ("A <!-- b", "[A] <!-- b"),
        ("A <b title='b > c", "[A] <b title='b > c"),
        ("A < b <3 <", "[A < b <3 <]"),
    ],
)  # fmt: skip
def test_text_is_found(page: str, shown: str) -> None:
    """What is not in brackets is the same in the translated page."""
    assert show(page) == shown
    assert "".join(token.raw for token in tokenize(page)) == page


@pytest.mark.parametrize(
    "piece",
    [
        "<a ", '<a href="', '<a "', "<a b='>", "<a b =", "<a translate", "</", "</a ", "<!--", "<!-- -", "<!",
        "<![", "<?", "<script>", "<script", "<textarea>", "&", "&#0", "&nbsp;", "&nbsp;x", " ", "x ", "￼x",
        "<b>x", "<b>x</i>", "<b><i>x</b></i>", "<b></b>x", "<b/>x", "<br>x", "<code>x", "</code>x",
        "<code>x</code>y", "<li translate=no>x", "<a>x", "<a>x@", "<noscript>", "<script><!--<script>",
        "<b><i>x</b>", "<i><b></i>x", "<svg/>x", "<code/>x", "<i> </i>x", "<span>x</span>", "</i>x",
        "<i></i>", "<b hidden>x", "<b hidden>x</b>y", "x<div hidden>y", "x<div hidden>y</div>",
        "<i style='display:none'>",
        "<i style='display:block'>x",
        "<i style='white-space:pre'>x\n", "<i style='white-space:pre'>x  ", "<i>x </i> ",
        "<div style='display:inline'>x</div>", '<i style="; ; ',
        "<!--<script>", "<i><u><s><b><a>x</b></a>", '<b title="x">y', "<%", "<?php ", "<%%>", "<a>x</a>|",
        "<label>x</label><input>", "<button>x</button> ", "<i></i> x", "<i></i> ", "|</a>", "<label>",
        "</label>", "<del>xx</del><ins>xx</ins>", "<progress>",
    ],
)  # fmt: skip
def test_reading_takes_linear_time(piece: str) -> None:
    """Anyone can send a page to a server: each of these pieces makes some parser take quadratic time."""

    def measure(count: int) -> float:
        page = piece * count
        begin = time.process_time()
        read_page(page)
        return time.process_time() - begin

    # The longer takes 10 times as long, and would take 100 times.
    assert measure(20_000) < 40 * measure(2_000) + 0.05


@pytest.mark.parametrize(
    ("before", "piece", "after"),
    [
        ("<a>" * 100, "@", " x" + "</a>" * 100),
        ("<a>" * 100, "x@ ", "</a>" * 100),
        ("", "xxxxx", ".<b>y</b>"),
        ("", "@", "<b>y</b>"),
        ('<b title="', "x ", '">y</b>'),
        ("<b ", "a=b ", ">y</b>"),
        ("<b style='", "; ", "'>y</b>"),
        ("<b style='display:", " ", "'>y</b>"),
        ("<p style='white-space:pre'>", "x\n", "</p>"),
        ("<p style='white-space:pre'>", "  ", "x</p>"),
        ("<p style='white-space:pre'>", "&#", "</p>"),
        ("<a>x</a>", "<wbr>", "<a>y</a>"),
        ("<a>x</a>", "<i></i>", "<a>y</a>"),
        ("x", " ", "<b>y</b>"),
    ],
)
def test_reading_long_pieces_takes_linear_time(before: str, piece: str, after: str) -> None:
    """Links in links around @ took 35 s for 10,000 characters."""

    def measure(count: int) -> float:
        page = before + piece * count + after
        begin = time.process_time()
        read_page(page)
        return time.process_time() - begin

    assert measure(20_000) < 40 * measure(2_000) + 0.05
