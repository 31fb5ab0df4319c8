"""Translation memories: TMX, and XLIFF 1.2 and 2.

lxml resolves the entities that a file defines, within libxml2's limit on how far they may make it grow, and
fetches nothing.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Any, NamedTuple

from lxml import etree  # type: ignore[import-untyped]

from convs2s.base.files import DAMAGE_ERRORS, REMOVE_BYTES, damage_error, open_text
from convs2s.base.messages import inflect
from convs2s.text.sources.notes import Notes
from convs2s.text.sources.statuses import Fact, judge, list_attributes, list_properties

XML_LANGUAGE = "{http://www.w3.org/XML/1998/namespace}lang"
IGNORABLE = "{*}ignorable"
UNITS = "{*}tu", "{*}trans-unit", "{*}segment", IGNORABLE
PLACEHOLDERS = {"ph", "x", "ut", "cp"}
"""Inline elements that replace something between words, such as a line break, a variable or an image."""
CODES = PLACEHOLDERS | {"bpt", "ept", "it", "bx", "ex", "sc", "ec", "sm", "em"}
"""Inline elements whose content is formatting of the original document; that of others, as <g>, is text."""
ENTITY = "XML itself has only &amp; &lt; &gt; &quot; &apos;: replace others, for example: sed 's/&nbsp;/ /g'."
AMPERSAND = "Replace & by &amp;, for example: perl -pe 's/&(?!#?\\w+;)/&amp;/g'."
ADVICE = {
    "ERR_UNDECLARED_ENTITY": ENTITY,
    "WAR_UNDECLARED_ENTITY": ENTITY,
    "ERR_NAME_REQUIRED": AMPERSAND,
    "ERR_ENTITYREF_SEMICOL_MISSING": AMPERSAND,
    "ERR_INVALID_ENCODING": f"Declare its encoding in line 1 or, if few bytes are damaged: {REMOVE_BYTES}.",
}
"""What to do, by the name of libxml2's error."""


class Side(NamedTuple):
    """A segment in one language, as the file has it."""

    code: str
    """Of the language, with region and script."""
    node: Any
    """The element with the text."""


class MemorySegment(NamedTuple):
    """A segment as the file has it, whether it is translated or not."""

    sides: list[Side]
    facts: list[Fact]
    """What the file says of its translation."""
    line: int
    fault: str = ""
    """Why its sides cannot be told, to follow "left out segments"."""


class Text(NamedTuple):
    """A segment in one language, on one line."""

    code: str
    """Of the language, in lower case, with hyphens."""
    text: str


def read_memory(path: Path, languages: tuple[str, str]) -> Iterator[tuple[str, str]]:
    """Yield the segments of a memory that are in both languages, without inline codes.

    Each other segment is counted under one reason, and so is each that is taken but doubtful: all in one
    warning at the end, which also has the numbers of segments taken and read.

    Args:
        languages: codes of source and target; en also finds en-US.
    """
    notes = Notes(path)
    languages_found = set[str]()
    pairs = segments = 0
    varieties = Counter[str]()  # number of segments used, by code of language
    first_lines = dict[str, int]()
    original = ""  # code of the language that was translated, of a whole memory
    with open_text(path) as stream:
        # It recovers only so that one forbidden character does not end the file: see require_readable.
        units = etree.iterparse(
            stream, tag=(*UNITS, "{*}header"), resolve_entities="internal", no_network=True, recover=True
        )
        try:
            for _, unit in units:
                if etree.QName(unit).localname == "header":
                    original = unit.get("srclang") or original
                    continue
                for segment in readable_segments(unit, languages, original, notes):
                    segments += 1
                    if segment is None:
                        continue
                    languages_found |= {base_language(side.code) for side in segment.sides}
                    try:
                        pair = translated_pair(segment, languages, notes)
                    except UnicodeDecodeError:
                        pair = None
                        note_no_character(segment.line, notes)
                    if pair:
                        pairs += 1
                        source, target = pair
                        for side in pair:
                            varieties[side.code] += 1
                            first_lines.setdefault(side.code, segment.line)
                        yield source.text, target.text
                forget(unit)
        except etree.XMLSyntaxError as error:
            require_readable(path, units.error_log, notes)
            raise ValueError(f"{path} is not well-formed XML: {error}. Expected .tmx or .xliff.") from error
        except DAMAGE_ERRORS as error:
            raise damage_error(path, inflect(pairs, "pair"), error) from error
    require_readable(path, units.error_log, notes)
    bases = Counter(map(base_language, varieties))
    for code, count in varieties.items():
        if bases[base_language(code)] > 1:
            notes.add(f"segments used in {code}, one of several varieties", first_lines[code], count)
    notes.warn(f"{pairs:,} of {inflect(segments, 'segment')} taken")
    if not pairs:
        names = ", ".join(sorted(languages_found)) or "no segments"
        raise ValueError(
            f"{path}: expected segments in {' and '.join(languages)}, found {names}. Is it a "
            "translation memory, .tmx or .xliff, with the `languages` of params.yaml?"
        )


def note_no_character(line: int, notes: Notes) -> None:
    """Note a segment with what lxml cannot return: it takes &#xD800;, half a character."""
    notes.add("left out segments with invalid character references", line)


def readable_segments(
    unit: Any, languages: tuple[str, str], original: str, notes: Notes
) -> Sequence[MemorySegment | None]:
    """Return the segments of a unit, as `list_segments`; None for one, with a note, if it cannot be read."""
    if is_ignorable(unit):
        note_ignorable(unit, notes)
        return []
    try:
        return list(list_segments(unit, languages, original, notes))
    except UnicodeDecodeError:
        note_no_character(unit.sourceline, notes)
        return [None]


def translated_pair(segment: MemorySegment, languages: tuple[str, str], notes: Notes) -> list[Text] | None:
    """Return source and target; if there is a reason to leave the segment out, None, and add a note."""
    reason, doubt = judge(segment.facts)
    reason = reason or segment.fault
    if reason:
        notes.add(f"left out segments {reason}", segment.line)
        return None
    texts = list[Text]()
    for language in languages:
        of_language = [side for side in segment.sides if base_language(side.code) == language]
        if not of_language:
            notes.add(f"left out segments that are not in {' and '.join(languages)}", segment.line)
            return None
        if len(of_language) > 1:
            doubt = f"segments with several texts in {language}, of which the first is used"
        used = of_language[0]
        texts.append(Text(used.code.lower().replace("_", "-"), plain_text(used.node, notes, segment.line)))
    if not all(side.text for side in texts):
        notes.add("left out segments with an empty side", segment.line)
        return None
    if doubt:
        notes.add(doubt, segment.line)
    return texts


def list_segments(
    unit: Any, languages: tuple[str, str], original: str, notes: Notes
) -> Iterator[MemorySegment]:
    """Yield the segments of a unit: one, or those that XLIFF 1.2 marks in both sides, matched by their ids.

    Args:
        original: code of the language that was translated, in a TMX without one for this unit.
    """
    sides = list(list_sides(unit))
    facts = list(list_facts(unit, languages, original))
    target = next(unit.iterchildren("{*}target"), None)
    source = next(
        (node for name in ("seg-source", "source") for node in unit.iterchildren(f"{{*}}{name}")), None
    )
    marks = [list_marks(node) for node in (source, target)]
    definitions = [
        node for group in unit.iterchildren("{*}seg-defs") for node in group.iterchildren("{*}seg")
    ]
    is_source_empty = source is None or not "".join(source.itertext()).strip()
    if not all(marks) and max(map(len, marks)) <= 1 and not (is_source_empty and marks[1]):
        facts += [fact for node in definitions for fact in list_attributes(node)]
        yield MemorySegment(sides, facts, unit.sourceline)
        return
    codes = {etree.QName(side.node).localname: side.code for side in sides}
    by_id: dict[str | None, tuple[list[Side], list[Side]]] = {}
    for i, (name, node) in enumerate((("source", source), ("target", target))):
        for mark in marks[i]:
            by_id.setdefault(mark.get("mid"), ([], []))[i].append(Side(codes.get(name, ""), mark))
        if marks[i] and plain_text(node, notes, unit.sourceline, marks[i]):
            notes.add("left out text between segments (outside of <mrk>)", unit.sourceline)
    for mid, of_sides in by_id.items():
        sources, targets = map(len, of_sides)
        fault = ""
        if max(sources, targets) > 1:
            fault = "whose id (mid) is repeated in their unit"
        elif sources == 0:
            fault = "whose id (mid) only the target has"
        elif targets == 0 and target is not None:
            fault = "whose id (mid) only the source has"
        own = [node for node in definitions if node.get("id") == mid]
        for pair in zip_longest(*of_sides):
            found = [side for side in pair if side is not None]
            own_facts = [
                fact for node in (*own, *(side.node for side in found)) for fact in list_attributes(node)
            ]
            yield MemorySegment(
                [side for side in found if side.code], facts + own_facts, found[0].node.sourceline, fault
            )


def list_marks(node: Any) -> list[Any]:
    """Return the elements that mark segments in a side of a unit of XLIFF 1.2, but none within another."""
    is_mark = "local-name()='mrk' and @mtype='seg'"
    return [] if node is None else list(node.xpath(f".//*[{is_mark}][not(ancestor::*[{is_mark}])]"))


def list_facts(unit: Any, languages: tuple[str, str], original: str) -> Iterator[Fact]:
    """Yield what a unit says of its translation into these languages."""
    variants = [
        node
        for node in unit.iterchildren("{*}tuv")
        if base_language(node.get(XML_LANGUAGE) or node.get("lang") or "") in languages
    ]
    for node in (unit, *variants, *unit.iterchildren("{*}target")):
        yield from list_attributes(node)
        yield from list_properties(node)
    if kept := unit.xpath("string((ancestor-or-self::*/@translate)[last()])"):
        yield "translate", kept
    translated = unit.get("srclang") or original
    if translated not in ("", "*all*") and base_language(translated) not in languages:
        yield "srclang", translated


def list_sides(unit: Any) -> Iterator[Side]:
    """Yield the sides of a unit that name their language."""
    for variant in unit.iterchildren("{*}tuv"):
        language = variant.get(XML_LANGUAGE) or variant.get("lang")
        for segment in variant.iterchildren("{*}seg"):
            if language:
                yield Side(language, segment)
    for side, old, new in ("source", "source-language", "srcLang"), ("target", "target-language", "trgLang"):
        for node in unit.iterchildren(f"{{*}}{side}"):
            nearest = unit.xpath(f"string((ancestor::*/@{old} | ancestor::*/@{new})[last()])")
            language = node.get(XML_LANGUAGE) or nearest
            if language:
                yield Side(language, node)


def is_ignorable(unit: Any) -> bool:
    """Return whether an element is what XLIFF 2 calls ignorable, such as spaces between two segments."""
    return bool(etree.QName(unit).localname == "ignorable")


def note_ignorable(unit: Any, notes: Notes) -> None:
    """Note text between the segments of XLIFF 2, which has none but white space in most files."""
    try:
        if any(plain_text(side.node, notes, unit.sourceline) for side in list_sides(unit)):
            notes.add("left out text between segments (<ignorable>)", unit.sourceline)
    except UnicodeDecodeError:
        notes.add("left out text between segments (<ignorable>)", unit.sourceline)


def base_language(code: str) -> str:
    """Return a code of language without region or script."""
    return re.split("[-_]", code.lower(), maxsplit=1)[0]


def plain_text(node: Any, notes: Notes, line: int, without: Sequence[Any] = ()) -> str:
    """Return the text of an element on one line; inline codes become their equivalent text, if any.

    Args:
        without: elements within it whose text is left out.
    """
    parts = []
    last = ""  # character of the last part
    is_gap = False
    for piece in list_pieces(node, notes, line, without):
        if piece is None:
            is_gap = True
        elif piece:
            # Without its line break or image, "one<ph/>two" would be one word.
            if is_gap and last.isalnum() and piece[0].isalnum():
                parts.append(" ")
            parts.append(piece)
            last = piece[-1]
            is_gap = False
    # With `recover`, lxml lets references to control characters pass, which XML forbids.
    text = re.sub(r"[\x00-\x08\x0b\x0c\x0e-\x1f]", "", "".join(parts))
    lines = (part.strip() for part in re.split(r"[\r\n]", text))
    return " ".join(filter(None, lines))


def list_pieces(node: Any, notes: Notes, line: int, without: Sequence[Any]) -> Iterator[str | None]:
    """Yield the text of an element in pieces, and None in place of what has no text, such as a line break."""
    yield node.text or ""
    for child in node:
        if isinstance(child.tag, str):  # neither a comment nor a processing instruction
            name = etree.QName(child).localname
            equivalent = child.get("equiv-text") or child.get("equiv") or ""
            if child in without:
                yield None
            elif name == "mrk" and (child.get("mtype") or "").endswith("-deleted"):
                notes.add("left out texts that a revision deletes (<mrk>)", line)
            elif name not in CODES and len(child) == 0 and not child.text:
                yield None  # such as <br/>
            elif name not in CODES:
                yield from list_pieces(child, notes, line, without)
            elif equivalent and not equivalent.lstrip().startswith("<"):
                yield equivalent  # which the standard calls the text to put in place of the code
            elif name in PLACEHOLDERS:
                yield None
            if name in CODES and any("".join(sub.itertext()).strip() for sub in child.iter("{*}sub")):
                notes.add("left out texts within inline codes (<sub>)", line)
        yield child.tail or ""


def forget(unit: Any) -> None:
    """Free the memory of a unit that has been read, and of what comes before it."""
    unit.clear()
    for node in (unit, *unit.iterancestors()):
        while node.getparent() is not None and node.getprevious() is not None:
            del node.getparent()[0]


def require_readable(path: Path, log: Iterable[Any], notes: Notes) -> None:
    """Raise ValueError for the first fault of an XML file by which text may be lost.

    Only a forbidden character is not one: it is removed, and its place noted.
    """
    places = set()
    for entry in log:
        # lxml 5 has no error of its own for bytes that are not in the file's encoding.
        error = "ERR_INVALID_ENCODING" if "not proper UTF-8" in entry.message else entry.type_name
        if error == "ERR_INVALID_CHAR":
            places.add((entry.line, entry.column))
        elif entry.level_name in ("ERROR", "FATAL"):
            advice = ADVICE.get(error, "Expected .tmx or .xliff: is it complete?")
            message = " ".join(entry.message.split())
            raise ValueError(f"{path} is not well-formed XML: line {entry.line:,}: {message}. {advice}")
    for line, _ in sorted(places):
        notes.add("characters that XML forbids, removed or replaced by U+FFFD", line)
