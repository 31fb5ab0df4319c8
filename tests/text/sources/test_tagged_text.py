"""Text within tags: test sets of WMT and IWSLT, and talks of WIT3."""

import gzip
from pathlib import Path

import pytest

from convs2s.text.sources.pair_files import Part, file_part
from convs2s.text.sources.tagged_text import read_segments

WMT = """<srcset setid="newstest2014" srclang="any">
<doc sysid="src" docid="cnn.1" genre="news" origlang="en">
<hl>
<seg id="1">AT&amp;T &quot;up&quot; 5&#37; &#x20AC;</seg>
</hl>
<p>
<seg id="2">a <b>c &copy d &lt;x&gt;</seg>
</p>
</doc>
<DOC docid='cnn.2'>
<seg id=1>  in
two lines </seg><seg id="3"></seg><seg id="4">a\u00a0b\u2028c&#10;d&#13;e</seg>
</DOC>
</srcset>
"""
GERMAN = """<url>http://www.ted.com/talks/x.html</url>
<keywords>talks, TED</keywords>
<talkid>535</talkid>
<title>Stephen Palumbi: Der Spur folgen</title>
<description>TED Talk Subtitles</description>
Es kann <b>kompliziert</b> sein.
<laughter> Lachen
"""


def write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8", newline="\n")
    return path


def test_each_segment_is_a_line_with_its_characters(tmp_path: Path) -> None:
    """XML's five entities and numeric ones are resolved; a bare "&copy" or a tag inside is text.

    No-break spaces and U+2028 belong to the sentence; a line end, encoded or not, becomes a space.
    """
    assert read_segments(write(tmp_path / "a.sgm", WMT)) == [
        ("segment 1 of document 'cnn.1'", 'AT&T "up" 5% €'),
        ("segment 2 of document 'cnn.1'", "a <b>c &copy d <x>"),
        ("segment 1 of document 'cnn.2'", "in two lines"),
        ("segment 3 of document 'cnn.2'", ""),
        ("segment 4 of document 'cnn.2'", "a\u00a0b\u2028c d e"),
    ]


def test_pairs_have_the_same_document_and_number(tmp_path: Path) -> None:
    """The file name decides the format, compressed or not."""
    write(tmp_path / "src.en.sgm", '<doc docid="x"><seg id="1">one</seg><seg id="2">two</seg></doc>')
    reference = '<DOC docid="x" sysid="ref"><seg id="1">un</seg>\n<seg id="2"> doi </seg></DOC>'
    (tmp_path / "ref.ro.sgm.gz").write_bytes(gzip.compress(reference.encode()))
    part = file_part([tmp_path / "src.en.sgm", tmp_path / "ref.ro.sgm.gz"], None, ("en", "de"))
    assert list(part.pairs) == [("one", "un"), ("two", "doi")]


TWO = '<doc docid="d"><seg id="1">a</seg><seg id="2">b</seg></doc>'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("plain text\n", r"b\.sgm has no segments\. Expected <seg id=\.\.\.>"),
        (f"<src>{TWO}</src><ref>{TWO}</ref>", "sources and references in one file.*sacrebleu -t wmt21"),
        (TWO.replace("b</seg>", "b"), r"line 1: expected .* found '</doc>' within segment 2 of document 'd'"),
        (TWO.replace("a</seg>", "a"), r"line 1: expected .* found '<seg id=\"2\">' within segment 1 of"),
        (TWO.replace('<seg id="1">', ""), r"line 1: expected .* found '</seg>'\. Is the file complete"),
        (TWO.replace("</doc>", "\n<doc"), r"line 2: expected .* found '<doc'\. Is the file complete"),
        (TWO.removesuffix("</seg></doc>"), r"line 1: expected </seg>, found the end of the file"),
        (TWO.replace('"2">', '"2"'), r"line 1: expected .* found '<seg id=\"2\"b'"),
        ('<doc docid="d"><seg>one</seg></doc>', r"expected <seg id=NUMBER>.* found '<seg>'"),
        ('<doc docid="d"><seg trgid="1">one</seg></doc>', r"expected <seg id=NUMBER>.* found '<seg trgid"),
        (TWO + TWO, "a.sgm has its end where .* has segment 1 of document 'd'.*several references"),
        (TWO.replace('"2"', '"3"'), r"segment 2 of document 'd' where .*segment 3"),
        (TWO.replace('"d"', '"e"'), r"document 'd' where .* of document 'e'"),
        ('<doc docid="d"><seg id="1">x</seg></doc>', "has segment 2 of document 'd' where .* has its end"),
    ],
)
def test_broken_or_different_segments_are_an_error(tmp_path: Path, text: str, message: str) -> None:
    """Half a test set, or one in another order, would give a meaningless score."""
    paths = write(tmp_path / "a.sgm", TWO), write(tmp_path / "b.sgm", text)
    with pytest.raises(ValueError, match=message):
        list(file_part(paths, None, ("en", "de")).pairs)


TALK = """<mteval><refset>
<doc docid="1">
<url>http://x</url>
<speaker>A B</speaker>
<title>A talk</title>
<seg id="1"> a </seg>
lost
<seg ID=2 note="id=7">&#1;b&#233;</seg>
</doc>
<doc docid="2"><url>http://x</url> <keywords></keywords><seg id="1">c</seg></doc></refset></mteval>
"""


def test_text_outside_of_segments_is_counted(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Titles are no part of a test set, but a segment without its start tag would be missing unnoticed."""
    path = write(tmp_path / "a.xml", TALK)
    segments = read_segments(path)
    assert [text for _, text in segments] == ["a", "&#1;bé", "c"]
    assert segments[1][0] == "segment 2 of document '1'"
    assert caplog.messages == [f"{path}: left out text outside of <seg>: 2, first in line 2"]


def talks(folder: Path, source: str, target: str) -> Part:
    files = {"de": source, "en": target}
    return file_part(
        [write(folder / f"train.tags.de-en.{side}", text) for side, text in files.items()], None, ("en", "de")
    )


def test_titles_and_descriptions_are_text_and_other_tags_are_dropped(tmp_path: Path) -> None:
    """The authors' script does the same; unknown tags belong to the sentence. Tags must be the same."""
    english = GERMAN.replace("Der Spur folgen", "Following it").replace("kompliziert", "complicated")
    assert [source for source, _ in talks(tmp_path, GERMAN, english).pairs] == [
        "Stephen Palumbi: Der Spur folgen",
        "TED Talk Subtitles",
        "Es kann <b>kompliziert</b> sein.",
        "<laughter> Lachen",
    ]
    part = talks(tmp_path, GERMAN, english.replace("<talkid>535</talkid>\n", ""))
    with pytest.raises(ValueError, match=r"line 3: .*\.de has talkid but .*\.en has title\. Line i"):
        list(part.pairs)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.sgm", WMT, "has no segments"),
        ("IWSLT14.TED.tst2010.de-en.de.xml.gz", WMT, "has no segments"),
        ("train.tags.de-en.de", GERMAN, "line 1: .* has url"),
    ],
)
def test_the_name_of_either_file_decides_the_format(
    tmp_path: Path, name: str, text: str, message: str
) -> None:
    """Tags would be taken for sentences if only one side is read as tagged; plain text is left alone."""
    tagged = tmp_path / name
    plain = write(tmp_path / "b.txt", "one\n" * text.count("\n"))
    tagged.write_bytes(gzip.compress(text.encode()))
    for paths in ([tagged, plain], [plain, tagged]):
        with pytest.raises(ValueError, match=message):
            list(file_part(paths, None, ("en", "de")).pairs)
    untagged = write(tmp_path / "c.txt", text)
    assert len(list(file_part([untagged, untagged], None, ("en", "de")).pairs)) == text.count("\n")


def test_a_line_that_only_looks_like_metadata_is_counted(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Metadata has an end tag, or is empty; a sentence after such a tag would be missing unnoticed."""
    text = "<speaker>A</speaker>\n<doc docid='1' >\n</doc>\n<reviewer></reviewer>\n<title> T </TITLE >\nb\n"
    assert list(talks(tmp_path, text, text).pairs) == [("T", "T"), ("b", "b")]
    assert not caplog.messages
    assert list(talks(tmp_path, text + "<speaker> Hello\n", text + "<speaker>\n").pairs)[2:] == []
    message = "left out lines with text after <speaker>, which no tag ends: 1, first in line 7"
    assert caplog.messages == [f"{tmp_path / 'train.tags.de-en.de'}: {message}"]
