"""Translation memories: what is read, what is left out with a count, and what is refused."""

import bz2
import gzip
import lzma
from collections.abc import Callable
from pathlib import Path

import pytest
from backports import zstd

from convs2s.text.sources.memory import read_memory
from convs2s.text.sources.pair_files import file_part

DTD = '<!DOCTYPE tmx SYSTEM "tmx14.dtd" [<!ENTITY a "boom &b;"><!ENTITY b "<hi>bang</hi>">]>'
TMX = DTD + '\n<tmx version="1.4"><header/><body>{}</body></tmx>'
TAGGED = 'A <bpt i="1">{\\b </bpt>big<ept i="1">}</ept> <hi>dog</hi> &amp;\n cat &a;'
TUV = '<tuv xml:lang="{}"><seg>{}</seg></tuv>'
GOOD = ("A", "B")


def tu(*variants: tuple[str, str]) -> str:
    return f"<tu>{''.join(TUV.format(*variant) for variant in variants)}</tu>\n"


def en_de(source: str, target: str = "B") -> str:
    return TMX.format(tu(("en", source), ("de", target)))


def xliff(units: str, source: str = "en", target: str = "de") -> str:
    return (
        '<xliff version="1.2" xmlns="urn:oasis:names:tc:xliff:document:1.2">'
        f'<file source-language="{source}" target-language="{target}"><body>\n{units}</body></file></xliff>'
    )


def unit(target: str, attributes: str = "", source: str = "A") -> str:
    return f"<trans-unit id='1' {attributes}><source>{source}</source>{target}</trans-unit>\n"


def xliff2(segments: str) -> str:
    return (
        '<xliff version="2.0" xmlns="urn:oasis:names:tc:xliff:document:2.0" srcLang="en" trgLang="de">'
        "<file>\n"
        f'<unit id="1"><originalData><data id="d">code</data></originalData>{segments}</unit></file></xliff>'
    )


def segment(source: str, target: str, attributes: str = "") -> str:
    return f"<segment {attributes}><source>{source}</source><target>{target}</target></segment>\n"


HELLO = unit(
    "<target>Hallo</target><alt-trans match-quality='90'><source>x</source><target>no</target></alt-trans>",
    source="Hello",
)


def read(folder: Path, content: str | bytes) -> list[tuple[str, str]]:
    data = content if isinstance(content, bytes) else content.encode()
    (folder / "x.tmx").write_bytes(data)
    return list(read_memory(folder / "x.tmx", ("en", "de")))


@pytest.mark.parametrize(
    ("text", "pairs"),
    [
        (TMX.format(tu(("en-US", "Hello"), ("de_DE", "Hallo"))), [("Hello", "Hallo")]),
        (TMX.format(tu(("de", "Hallo"), ("fr", "Salut"), ("EN", "Hello"))), [("Hello", "Hallo")]),
        (en_de(TAGGED), [("A big dog & cat boom bang", "B")]),
        (en_de("H<bpt i='1'>[</bpt>2<ept i='1'>]</ept>O"), [("H2O", "B")]),
        (en_de("one<ph><![CDATA[<br>]]></ph>two"), [("one two", "B")]),
        (en_de("one<!-- c -->1<?pi?>2 <ph/>, 3"), [("one12 , 3", "B")]),
        (en_de(" a\u00a0\n\n \n b\u2028c "), [("a b\u2028c", "B")]),
        (xliff(HELLO, "en-GB"), [("Hello", "Hallo")]),
        (xliff(HELLO, "de", "en"), [("Hallo", "Hello")]),
        (xliff(unit("<target>B</target>", source="a<g>b</g><mrk mtype='seg'>c</mrk>")), [("abc", "B")]),
        (xliff(unit("<target>B</target>", source="a<x id='1' ctype='lb'/>b<bx id='1'/>c")), [("a bc", "B")]),
        (xliff(unit("<target>B</target>", source='a<x id="1" equiv-text=" {0}"/>b')), [("a {0}b", "B")]),
        (xliff(unit("<target>B</target>", source='a<x id="1" equiv-text="&lt;br/>"/>b')), [("a b", "B")]),
        (xliff(unit("<target xml:lang='de'>B</target>"), target="fr"), [GOOD]),
        (xliff(unit("<target state='final'>B</target>")), [GOOD]),
        (xliff(unit("<target state='needs-review-translation'>B</target>", "approved='no'")), [GOOD]),
        (xliff2(segment("A <pc id='1'>b</pc><ph id='2' dataRef='d'/>", "C")), [("A b", "C")]),
        (xliff2(segment("A <ph id='2' equiv='{n}'/>", "B", "state='reviewed'")), [("A {n}", "B")]),
    ],
)  # fmt: skip
def test_segments_are_read_without_codes(
    text: str, pairs: list[tuple[str, str]], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Segments are found by their language code, in either direction and in UTF-8 or UTF-16.

    A code between two words keeps them apart, or is what the file says to put there.
    """
    for encoding in ("utf-8", "utf-16"):
        assert read(tmp_path, gzip.compress(text.encode(encoding))) == pairs
    assert not caplog.text


NEW, KEPT = unit("<target state='new'>A</target>"), unit("<target>A</target>", "translate='no'")
OWN = unit("<target>B</target>", "translate='yes'")
TWO = tu(("en-US", "A"), ("de-AT", "B")) + tu(("en-US", "A"), ("de-CH", "B"))


@pytest.mark.parametrize(
    ("text", "count", "messages"),
    [
        (TMX.format(tu(("en", "a")) + tu(("en", "A"), ("de", "B"))), 1, [
            "left out segments that are not in en and de: 1, first in line 2",
        ]),
        (TMX.format(tu(("en", "A"), ("de", "B"), ("de-AT", "C"))), 1, [
            "segments with several texts in de, of which the first is used: 1, first in line 2",
        ]),
        (en_de("A</seg><seg>C"), 1, ["several texts in en, of which the first is used: 1, first in line 2"]),
        (TMX.format(TWO), 2, ["segments used in de-at, one of several varieties: 1, first in line 2; "
            "segments used in de-ch, one of several varieties: 1, first in line 3"]),
        (TMX.format(tu(("en", "A"), ("de", "B")) + tu(("en", "A"), ("de", " <ph>x</ph>"))), 1, [
            "left out segments with an empty side: 1, first in line 3",
        ]),
        (en_de("A <ph>img <sub>alt</sub></ph>"), 1, ["left out texts within inline codes (<sub>): 1, first"]),
        (TMX.format(tu(("en", "A"), ("de", "B")) + tu(("en", "a&#xD800;"), ("de", "B"))), 1, [
            "left out segments with references to no character: 1, first in line 3",
            "characters that XML forbids, removed or replaced by U+FFFD: 1, first in line 3",
        ]),
        (en_de("a\x01b&#x2;c&#0;"), 1, [
            "characters that XML forbids, removed or replaced by U+FFFD: 3, first in line 2",
        ]),
        (xliff(HELLO + unit("") + NEW + KEPT + NEW + unit("<target/>")), 1, [
            "left out segments that are not in en and de: 1, first in line 3",
            "left out segments that are not translated (state=new): 2, first in line 4",
            "left out segments that are not translated (translate=no): 1, first in line 5",
            "left out segments with an empty side: 1, first in line 7",
        ]),
        (xliff(f"{HELLO}<group translate='no'>{HELLO}{OWN}</group>"), 2,
            ["translated (translate=no): 1, first in line 3"]),
        (xliff(HELLO + "".join(unit(f"<target state='{state}'>B</target>") for state in (
            "needs-translation", "needs-l10n", "needs-adaptation", "translated", "signed-off"))), 4, [
            "(state=needs-translation): 1", "(state=needs-l10n): 1"]),
        (xliff2(segment("A", "B") + segment("A", "A", "state='initial'")
            + "<ignorable><source> </source></ignorable><ignorable><source>x</source></ignorable>"), 1, [
            "left out segments that are not translated (state=initial): 1, first in line 3",
            "left out text between segments (<ignorable>): 1, first in line 4",
        ]),
    ],
)  # fmt: skip
def test_what_is_left_out_or_doubtful_is_counted(
    text: str, count: int, messages: list[str], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """One warning names the file, and for each kind of segment its number and its first line."""
    assert len(read(tmp_path, text)) == count
    (record,) = caplog.records
    for message in messages:
        assert message in record.getMessage()
    assert record.getMessage().startswith(f"{tmp_path / 'x.tmx'}: ")
    assert record.getMessage().count(";") == len("; ".join(messages).split(";")) - 1


LAUGHS = "".join(f'<!ENTITY l{i} "{f"&l{i - 1};" * 10}">' for i in range(1, 10))
BOMB = f'<!DOCTYPE tmx [<!ENTITY l0 "lololololol">{LAUGHS}]>' + en_de("&l9;").removeprefix(DTD)
OUTSIDE = '<!DOCTYPE tmx [<!ENTITY a SYSTEM "file:///etc/passwd">]>' + en_de("&a;").removeprefix(DTD)
WHOLE = en_de("A")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (TMX.format(tu(("en", "Hello"), ("fr", "Salut"))), "expected segments in en and de, found en, fr"),
        (TMX.format(""), "found no segments"),
        (xliff(NEW + KEPT), "expected segments in en and de, found de, en"),
        (TMX.format("<tu>"), "is not well-formed XML: line 2: .*is it complete"),
        (WHOLE[: -len("</tmx>")], "line 3: Premature end .*is it complete"),
        (WHOLE[: WHOLE.index("<tu>")], "line 2: Premature end .*is it complete"),
        (WHOLE + WHOLE, "line 3: .*is it complete"),
        ("Hello\tHallo\n", "is not well-formed XML"),
        ("", "is not well-formed XML"),
        (en_de("a&nbsp;b"), "line 2: Entity 'nbsp' not defined. XML itself has only"),
        (OUTSIDE, "line 2: Entity 'a' not defined"),
        (BOMB, "line 1: Maximum entity amplification factor exceeded"),
        (en_de("a & b"), r"line 2: xmlParseEntityRef: no name\. Replace & by &amp;, for example: perl -pe"),
        (en_de("R&D <b"), r"line 2: EntityRef: expecting ';'\. Replace & by &amp;"),
        (en_de("\n\xe4").encode("latin-1"), "line 3: .*iconv -c -f utf-8 -t utf-8"),
        (en_de("<g>" * 1000), "line 2: Excessive depth"),
    ],
)  # fmt: skip
def test_another_or_a_broken_memory_is_refused(content: str | bytes, message: str, tmp_path: Path) -> None:
    """The error has the line and what to do; otherwise, text after the fault would be left out or wrong."""
    with pytest.raises(ValueError, match=rf"x\.tmx.*{message}"):
        read(tmp_path, content)


def test_what_is_taken_out_joins_no_words(tmp_path: Path) -> None:
    """An element without text may be a line break; a control character is nothing."""
    assert read(tmp_path, en_de("one<br/>two thr&#x1;ee")) == [("one two three", "B")]


def test_a_memory_is_a_source_of_pairs(tmp_path: Path) -> None:
    """`memory` in params.yaml says what a file is, whatever its name."""
    (tmp_path / "export").write_text(en_de("A"))
    part = file_part([tmp_path / "export"], None, ("en", "de"))
    assert (part.name, list(part.pairs)) == ("export", [("A", "B")])


def with_checksum(content: bytes) -> bytes:
    """Compress as the command zstd does."""
    return zstd.compress(content, options={zstd.CompressionParameter.checksum_flag: 1})


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, lzma.compress, with_checksum])
def test_a_damaged_compressed_memory_is_named(pack: Callable[[bytes], bytes], tmp_path: Path) -> None:
    """Wherever the file is cut or changed, an error must come before a segment is left out."""
    units = "".join(tu(("en", f"{i * i * 7919}"), ("de", f"{i}")) for i in range(3000))
    whole = pack(TMX.format(units).encode())
    changed = bytearray(whole)
    changed[len(whole) // 2] ^= 64
    for content in (whole[: len(whole) // 2], whole[:-1], whole[:5], bytes(changed), whole + b"garbage!"):
        with pytest.raises(ValueError, match=r"x\.tmx (cannot be read past \d|is not well-formed)"):
            read(tmp_path, content)
