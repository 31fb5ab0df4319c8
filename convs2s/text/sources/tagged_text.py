"""Text within tags: test sets in SGML (WMT's .sgm, IWSLT's .xml), and WIT3's talks (train.tags.*).

sacreBLEU's readers are not used: they leave "&amp;" in the text, replace no-break spaces, and neither compare
documents nor notice a segment without an end.
"""

import html
import re
from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path

from convs2s.base.files import read_pairs
from convs2s.text.sources.notes import Notes, noted_lines

LONGEST_QUOTE = 100  # characters of a faulty tag in a message

# A tag that begins or ends a document or a segment, up to its end or to the next "<".
MARK = re.compile(r"<(?P<name>/?(?:doc|seg))\b(?P<attributes>[^<>]*)(?P<end>>?)", re.IGNORECASE)
SOURCE_SIDE, REFERENCE_SIDE = (re.compile(rf"<{tag}\b", re.IGNORECASE) for tag in ("src", "ref"))
ATTRIBUTE = re.compile(r"""(?<![\w:.-])([\w:.-]+)\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'>]+))""")
TAG = re.compile(r"<[^<>]*>")
# XML's five entities, and numbers. HTML has thousands, many without a semicolon; "AT&T" is not a reference.
REFERENCE = re.compile(r"&(?:amp|lt|gt|quot|apos|#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6});")
KEPT, DROPPED = "title|description", "url|talkid|keywords|speaker|reviewer|translator|doc"
"""Tags of talks that contain translated text, and those that contain metadata."""
START_TAG = re.compile(rf"</?(?P<tag>{KEPT}|{DROPPED})\b[^<>]*>", re.IGNORECASE)
METADATA = re.compile(rf"<(?P<tag>{DROPPED})\b[^<>]*>[^<>]*</(?P=tag)\s*>", re.IGNORECASE)


def read_segment_pairs(source: Path, target: Path) -> Iterator[tuple[str, str]]:
    """Yield the texts of the segments, in order; the files must have the same documents and segments."""
    segments = zip_longest(read_segments(source), read_segments(target), fillvalue=("its end", ""))
    for (source_place, source_text), (target_place, target_text) in segments:
        if source_place != target_place:
            raise ValueError(
                f"{source} has {source_place} where {target} has {target_place}. Expected the same segments "
                "in the same order: is a download incomplete, has one several references, or does one belong "
                "to another test set?"
            )
        yield source_text, target_text


def read_segments(path: Path) -> list[tuple[str, str]]:
    """Return the place and text of each segment, on one line and with character references resolved.

    Text outside of segments, such as the titles of talks, is counted and left out.
    """
    notes = Notes(path)
    text = "\n".join(noted_lines(path, notes))
    if SOURCE_SIDE.search(text) and REFERENCE_SIDE.search(text):
        raise ValueError(
            f"{path} has sources and references in one file, as WMT's test sets have since 2021. Expected a "
            "file for each side: extract them, for example with sacrebleu -t wmt21 -l en-de --echo src"
        )
    segments = []
    document = ""
    opened = ""  # the segment within which the text is, if any
    line = 1
    last_end = 0  # of the last tag
    for mark in MARK.finditer(text):
        between = text[last_end : mark.start()]
        last_end = mark.end()
        first_line = line
        line += between.count("\n")
        name = mark["name"].lower()
        attributes = read_attributes(mark["attributes"])
        is_expected = (name == "/seg") == bool(opened) and mark["end"]
        if not is_expected or (name == "seg" and not attributes.get("id")):
            raise ValueError(
                f"{path}, line {line}: expected <seg id=NUMBER>text</seg>, found {mark[0][:LONGEST_QUOTE]!r}"
                f"{f' within {opened}' if opened else ''}. Is the file complete?"
            )
        if name == "/seg":
            segments.append((opened, join_lines(between)))
            opened = ""
        elif TAG.sub("", METADATA.sub("", between)).strip():
            notes.add("left out text outside of <seg>", first_line)
        if name == "doc":
            document = attributes.get("docid", "")
        elif name == "seg":
            opened = f"segment {attributes['id']} of document {document!r}"
        line += mark[0].count("\n")
    if opened:
        raise ValueError(f"{path}, line {line}: expected </seg>, found the end of the file. Is it complete?")
    if not segments:
        raise ValueError(f"{path} has no segments. Expected <seg id=...>text</seg> within <doc docid=...>.")
    if TAG.sub("", METADATA.sub("", text[last_end:])).strip():
        notes.add("left out text outside of <seg>", line)
    notes.warn()
    return segments


def read_attributes(text: str) -> dict[str, str]:
    """Return the attributes in a tag, quoted or not, by their names in lowercase."""
    return {name.lower(): "".join(values) for name, *values in ATTRIBUTE.findall(text)}


def join_lines(text: str) -> str:
    """Return a segment's text on one line; whitespace other than line ends is kept."""
    joined = " ".join(line.strip(" \t\r") for line in text.split("\n"))
    resolved = REFERENCE.sub(
        lambda match: re.sub(r"[\r\n]", " ", html.unescape(match[0]) or match[0]), joined
    )
    return resolved.strip(" \t")


def read_tagged_pairs(source: Path, target: Path) -> Iterator[tuple[str, str]]:
    """Yield the sentence pairs, titles and descriptions of talks; tags not listed above count as text."""
    notes = {path: Notes(path) for path in (source, target)}
    lines = read_pairs(source, target, lambda path: noted_lines(path, notes[path]))
    for number, (source_line, target_line) in enumerate(lines, start=1):
        source_tag, source_text = untag(source_line, number, notes[source])
        target_tag, target_text = untag(target_line, number, notes[target])
        if source_tag != target_tag:
            raise ValueError(
                f"line {number}: {source} has {source_tag} but {target} has {target_tag}. Line i of one must "
                "translate line i of the other: is a file incomplete?"
            )
        if source_tag not in DROPPED.split("|"):
            yield source_text, target_text
    for notes_on_file in notes.values():
        notes_on_file.warn()


def untag(line: str, number: int, notes: Notes) -> tuple[str, str]:
    """Return the tag around a line, or "no tag", and its text."""
    start = START_TAG.match(line.strip())
    if start is None:
        return "no tag", line
    tag = start["tag"].lower()
    text = line.strip()[start.end() :].rstrip()
    before, end, name = text.rpartition("</")
    is_closed = end and name.endswith(">") and name[:-1].strip().lower() == tag
    if tag in DROPPED.split("|") and text and not is_closed:
        notes.add(f"left out lines with text after <{tag}>, which no tag ends", number)
    return tag, (before if is_closed else text).strip()
