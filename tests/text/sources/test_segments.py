"""Test sets in segments, the format of WMT and IWSLT."""

import gzip
from pathlib import Path

import pytest

from convs2s.text.sources.pair_files import file_part
from convs2s.text.sources.segments import is_segmented, read_segment_pairs, read_segments

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
two lines </seg><seg id="3"></seg>
</DOC>
</srcset>
"""


def write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8", newline="\n")
    return path


def test_each_segment_is_a_line_with_its_characters(tmp_path: Path) -> None:
    """XML's five entities and numeric ones are resolved; a bare "&copy" or a tag inside is text."""
    found = read_segments(write(tmp_path / "a.sgm", WMT))
    assert [tuple(segment) for segment in found] == [
        ("cnn.1", "1", 'AT&T "up" 5% €'),
        ("cnn.1", "2", "a <b>c &copy d <x>"),
        ("cnn.2", "1", "in two lines"),
        ("cnn.2", "3", ""),
    ]


def test_other_whitespace_is_kept(tmp_path: Path) -> None:
    """No-break spaces and U+2028 belong to the sentence; an encoded line end becomes a space."""
    text = '<doc docid="d"><seg id="1">a\u00a0b\u2028c&#10;d&#13;e</seg></doc>'
    assert read_segments(write(tmp_path / "a.sgm", text))[0].text == "a\u00a0b\u2028c d e"


def test_pairs_have_the_same_document_and_number(tmp_path: Path) -> None:
    """The file name decides the format, compressed or not; the provenance has names and hashes."""
    write(tmp_path / "src.en.sgm", '<doc docid="x"><seg id="1">one</seg><seg id="2">two</seg></doc>')
    reference = '<DOC docid="x" sysid="ref"><seg id="1">un</seg>\n<seg id="2"> doi </seg></DOC>'
    (tmp_path / "ref.ro.sgm.gz").write_bytes(gzip.compress(reference.encode()))
    part = file_part([tmp_path / "src.en.sgm", tmp_path / "ref.ro.sgm.gz"], None)
    assert [(pair.source, pair.target) for pair in part.pairs] == [("one", "un"), ("two", "doi")]
    assert [file["name"] for file in part.provenance["files"]] == ["src.en.sgm", "ref.ro.sgm.gz"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("plain text\n", r"a\.sgm has no segments\. Wanted <seg id=\.\.\.>"),
        (
            '<doc docid="d">\n<seg id="1">one\n<seg id="2">two</seg></doc>',
            r"a\.sgm, line 2: segment 1 has no end",
        ),
        ('<doc docid="d"><seg id="1">one</doc>', r"line 1: segment 1 has no end"),
        ('<doc docid="d"><seg>one</seg></doc>', r"segment \? has the id ''\. Wanted a number"),
        (
            '<doc docid="d"><seg id="2">b</seg>\n<seg id="1">a</seg>',
            r"line 2: segment 1 of document 'd' follows",
        ),
        (
            '<doc docid="d"><seg id="1">a</seg><seg id="1">b</seg>',
            r"segment 1 of document 'd' follows segment 1",
        ),
    ],
)
def test_broken_segments_are_an_error_with_their_line(tmp_path: Path, text: str, message: str) -> None:
    """Half a test set, or one in another order, would give a meaningless score."""
    with pytest.raises(ValueError, match=message):
        read_segments(write(tmp_path / "a.sgm", text))


@pytest.mark.parametrize(
    ("target", "message"),
    [
        (
            '<doc docid="d"><seg id="1">x</seg><seg id="3">y</seg></doc>',
            r"segment 2 of document 'd' where .*segment 3",
        ),
        (
            '<doc docid="e"><seg id="1">x</seg><seg id="2">y</seg></doc>',
            r"document 'd' where .* of document 'e'",
        ),
        ('<doc docid="d"><seg id="1">x</seg></doc>', r"has 2 segments but .* has 1\. Wanted the same"),
    ],
)
def test_files_of_different_segments_are_an_error(tmp_path: Path, target: str, message: str) -> None:
    """Pairing them by line would score sentences against the wrong references."""
    source = '<doc docid="d"><seg id="1">a</seg><seg id="2">b</seg></doc>'
    paths = write(tmp_path / "a.sgm", source), write(tmp_path / "b.sgm", target)
    with pytest.raises(ValueError, match=message):
        list(read_segment_pairs(*paths))


def test_segments_against_plain_text_are_an_error(tmp_path: Path) -> None:
    """Tags would be taken for sentences."""
    paths = [write(tmp_path / "a.sgm", WMT), write(tmp_path / "b.txt", "x\n")]
    with pytest.raises(
        ValueError, match=r"a\.sgm has segments or tags, judging by its name, but b\.txt does not"
    ):
        list(file_part(paths[::-1], None).pairs)


def test_names_decide_the_format() -> None:
    """The names are those of WMT and IWSLT."""
    assert is_segmented(Path("newstest2014-deen-src.en.sgm"))
    assert is_segmented(Path("IWSLT14.TED.tst2010.de-en.de.xml"))
    assert not is_segmented(Path("europarl-v7.de-en.de"))
