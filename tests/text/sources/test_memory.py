"""Translation memories: what is read, what is left out with a count, and what is refused."""

import bz2
import gzip
import lzma
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from convs2s.base.files import zstd
from convs2s.text.sources.memory import read_memory
from convs2s.text.sources.pair_files import file_part
from convs2s.text.sources.statuses import LEFT_OUT, TAKEN

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
            "left out segments with invalid character references: 1, first in line 3",
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
            "4 of 6 segments taken: left out segments that are not translated (state=needs-translation): 1",
            "(state=needs-l10n): 1",
            "segments taken, though they may need a review (state=needs-adaptation): 1, first in line 5"]),
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


SDL = """<trans-unit id="u"><source>One. Two. Three.</source>
<seg-source><g id="9"><mrk mtype="seg" mid="1">One.</mrk> <mrk mtype="seg" mid="2">Two.</mrk></g>
 <mrk mtype="seg" mid="3">Three.</mrk></seg-source>
<target><mrk mtype="seg" mid="3">Drei.</mrk> <g id="9">{}</g></target>
<sdl:seg-defs xmlns:sdl="http://sdl.com/FileTypes/SdlXliff/1.0"><sdl:seg id="1" {}/>
<sdl:seg id="2" conf="Translated" origin="tm"/><sdl:seg id="3" conf="ApprovedSignOff"/></sdl:seg-defs>
</trans-unit>
"""
"""A unit of Trados, whose translator has put the last sentence first."""
MARK = '<mrk mtype="seg" mid="{}">{}</mrk>'
ONE, TWO_MARKED = MARK.format(1, "Eins."), MARK.format(2, "Zwei.")
ALL = {("One.", "Eins."), ("Two.", "Zwei."), ("Three.", "Drei.")}
TRACKED = '<mrk mtype="x-sdl-deleted">Ein</mrk><mrk mtype="x-sdl-added">Eins</mrk>.'
MEMOQ = """<trans-unit xmlns:mq="MQXliff" id="1" mq:status="{}"><source>One.</source><target>Eins.</target>
<mq:minorversions/></trans-unit>"""


def divided(source: str, target: str) -> str:
    """Return a unit of XLIFF 1.2 with these segments."""
    return f"<trans-unit id='1'><source>x</source><seg-source>{source}</seg-source>{target}</trans-unit>\n"


LEFT = " segments taken: left out segments "
REVIEW = " taken: segments taken, though they may need a review "
CHANGED = "<tu creationid='MT!' changeid='Eva'><prop type='x-Context'>0</prop>{}"
A_B = MARK.format("a", "A") + " " + MARK.format("b", "B")


@pytest.mark.parametrize(
    ("text", "pairs", "message"),
    [
        (xliff(SDL.format(ONE + " " + TWO_MARKED, 'conf="Translated"')), ALL, ""),
        (xliff(SDL.format(TWO_MARKED + ONE, 'conf="Translated" origin="mt"')), ALL,
            "3 of 3 segments" + REVIEW + "(origin=mt): 1, first in line 3"),
        (xliff(SDL.format(ONE + TWO_MARKED, 'conf="Draft" origin="mt"')), ALL - {("One.", "Eins.")},
            "2 of 3" + LEFT + "that are unfinished, suggested or rejected (conf=Draft): 1"),
        (xliff(SDL.format(ONE + TWO_MARKED, 'percent="0"')), ALL,
            REVIEW + "(conf=Unspecified): 1, first in line 3"),
        (xliff(SDL.format(TWO_MARKED, 'conf="Translated"')), ALL - {("One.", "Eins.")},
            "2 of 3" + LEFT + "whose id (mid) only the source has: 1, first in line 3"),
        (xliff(SDL.format(TWO_MARKED + MARK.format(1, ""), "conf='Translated'")), ALL - {("One.", "Eins.")},
            "2 of 3" + LEFT + "with an empty side: 1, first in line 3"),
        (xliff(SDL.format(ONE + TWO_MARKED + MARK.format(4, "Vier."), "conf='Translated'")), ALL,
            "3 of 4" + LEFT + "whose id (mid) only the target has: 1, first in line 5"),
        (xliff(SDL.format(ONE + TWO_MARKED + ONE, "conf='Translated'")), ALL - {("One.", "Eins.")},
            "2 of 4" + LEFT + "whose id (mid) is repeated in their unit: 2"),
        (xliff(SDL.format(ONE + TWO_MARKED + "mehr", "conf='Translated'")), ALL,
            "left out text between segments (outside of <mrk>): 1, first in line 2"),
        (xliff(SDL.format(MARK.format(1, TRACKED) + TWO_MARKED, "conf='Translated'")), ALL,
            "left out texts that a revision deletes (<mrk>): 1, first in line 3"),
        (xliff(HELLO + divided(A_B, "<target>Nur A</target>")), {("Hello", "Hallo")},
            "1 of 3" + LEFT + "whose id (mid) only the source has: 2, first in line 3"),
        (xliff(HELLO + divided("", f"<target>{MARK.format(1, 'Eins.')}</target>")), {("Hello", "Hallo")},
            "1 of 2" + LEFT + "whose id (mid) only the target has: 1, first in line 3"),
        (xliff(HELLO + divided(A_B, "")), {("Hello", "Hallo")},
            "1 of 3" + LEFT + "that are not in en and de: 2, first in line 3"),
        (xliff(HELLO + divided(A_B, f"<target state='new'>{A_B}</target>")), {("Hello", "Hallo")},
            "1 of 3" + LEFT + "that are not translated (state=new): 2, first in line 3"),
        (xliff(divided(MARK.format(1, "A"), "<target>B</target>").replace(">x<", ">A<")), {GOOD}, ""),
        (xliff(HELLO + MEMOQ.format("Rejected by Eva")), {("Hello", "Hallo")},
            "1 of 2" + LEFT + "that are unfinished, suggested or rejected (status=Rejected by Eva): 1"),
        (xliff(MEMOQ.format("Proofread")), {("One.", "Eins.")}, ""),
        (xliff(HELLO + MEMOQ.format("PreTranslated")), {("Hello", "Hallo")},
            "rejected (status=PreTranslated): 1"),
        (xliff(unit("<target state='final' state-qualifier='leveraged-mt'>B</target>")), {GOOD},
            "1 of 1 segment" + REVIEW + "(state-qualifier=leveraged-mt): 1"),
        (xliff(unit("<target>B</target>", "y:editStatus='Hans' xmlns:y='y'")), {GOOD},
            REVIEW + "(editStatus): 1"),
        (xliff(unit("<target state='x-odd one'>B</target>")), {GOOD}, REVIEW + "(state=x-odd one): 1"),
        (TMX.format(CHANGED.replace('{}', tu(("en", "A"), ("de", "B"))[4:])), {GOOD}, ""),
        (en_de("A").replace("<header/>", "<header srclang='en-US'/>"), {GOOD}, ""),
        (en_de("A").replace("<header/>", "<header srclang='fr'/>"), {GOOD},
            REVIEW + "(srclang=fr): 1, first"),
        (en_de("A").replace("<tu>", "<tu><prop type='x-Status:SinglePicklist'>done</prop>"), {GOOD},
            "(Status): 1"),
    ],
)  # fmt: skip
def test_segments_are_matched_by_id_and_judged_by_their_status(
    text: str, pairs: set[tuple[str, str]], message: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """As programs for translators write them: half translated, reordered, suggested by machines."""
    found = read(tmp_path, text)
    assert len(found) == len(pairs) and set(found) == pairs
    assert message in caplog.text if message else not caplog.text


TU = en_de("A")
DEFINED = "<target>B</target><s:seg-defs xmlns:s='s'><s:seg conf='Translated' {}/></s:seg-defs>"
PLACES = {
    "state": xliff(unit("<target state='{}'>B</target>")),
    "subState": xliff2(segment("A", "B", "state='final' subState='{}'")),
    "state-qualifier": xliff(unit("<target state-qualifier='{}'>B</target>")),
    "approved": xliff(unit("<target>B</target>", "approved='{}'")),
    "translate": xliff(unit("<target>B</target>", "translate='{}'")),
    "sdl:seg conf": xliff(unit(DEFINED.replace("Translated' {}", "{}'"))),
    "x-ConfirmationLevel": TU.replace("<tu>", "<tu><prop type='x-ConfirmationLevel'>{}</prop>"),
    "sdl:seg origin": xliff(unit(DEFINED.replace("{}", "origin='{}'"))),
    "x-Origin": TU.replace("<tu>", "<tu><prop type='x-Origin'>{}</prop>"),
    "mq:status": xliff(unit("<target>B</target>", "xmlns:mq='q' mq:status='{}'")),
    "m:confirmed": xliff(unit("<target>B</target>", "xmlns:m='m' m:confirmed='{}'")),
    "creationid": TU.replace("<tu>", "<tu creationid='{}'>"),
    "srclang": TU.replace("<tu>", "<tu srclang='{}'>"),
}
"""A memory with each attribute that the documentation lists."""


def documented() -> Iterator[tuple[str, str, str]]:
    """Yield each attribute with each of its values, and what docs/own-data.md says of the segment."""
    page = (Path(__file__).parents[3] / "docs" / "own-data.md").read_text(encoding="utf-8")
    rows = page.partition("| attribute | taken |")[2].partition("\n\n")[0].split("\n")[2:]
    for row in rows:
        names, *cells = row.strip("|").split("|")
        for verdict, cell in zip(("taken", "taken and counted", "left out"), cells, strict=True):
            values = [value for value in re.findall("`(.+?)`", cell) if value != "changeid"]
            for name in sorted(PLACES.keys() & re.findall("`(.+?)`", names)):
                for value in [*values, *(["x-other"] if re.search(r"\bany\b|another", cell) else [])]:
                    yield name, value, verdict


@pytest.mark.parametrize(("name", "value", "verdict"), list(documented()))
def test_a_status_means_what_the_documentation_says(
    name: str, value: str, verdict: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Nobody sees in the result which segments were left out, so the table and the counts must be right."""
    text = PLACES[name].replace("{}", value)
    if verdict == "left out":
        with pytest.raises(ValueError, match="expected segments in en and de"):
            read(tmp_path, text)
        assert "0 of 1 segment taken: left out segments that are " in caplog.text
        assert f"={value}): 1, first in line 2" in caplog.text
    else:
        assert read(tmp_path, text) == [GOOD]
        assert ("1 of 1 segment taken: segments taken, though" in caplog.text) == (verdict != "taken")
        assert f"={value}): 1, first in line 2" in caplog.text or verdict == "taken"


def test_the_documentation_lists_every_status() -> None:
    """A value that only the code knows would surprise."""
    assert {name for name, *_ in documented()} == PLACES.keys()
    known = {value for listed in (*TAKEN.values(), *LEFT_OUT.values()) for value in listed.split()}
    assert known - {value for _, value, _ in documented()} == set(map(str, range(2, 12)))


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
