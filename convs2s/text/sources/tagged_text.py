"""Text within tags: test sets in SGML (WMT's .sgm, IWSLT's .xml), and WIT3's talks (train.tags.*).

sacreBLEU's readers are not used: they leave "&amp;" in the text, replace no-break spaces, and neither compare
documents nor notice a segment without an end.
"""

import html
import re
from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path

from convs2s.base.files import read_lines, read_pairs

# The start of a document, or a segment: up to its end tag, if that comes before anything else starts.
MARK = re.compile(
    r"<doc\b(?P<document>[^>]*)>|<seg\b(?P<segment>[^>]*)>(?:(?P<text>(?:(?!<seg\b|<doc\b|</doc\b).)*?)</seg\s*>)?",
    re.IGNORECASE | re.DOTALL,
)
# XML's five entities, and numbers. HTML has thousands, many without a semicolon; "AT&T" is not a reference.
REFERENCE = re.compile(r"&(?:amp|lt|gt|quot|apos|#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6});")
KEPT, DROPPED = "title|description", "url|talkid|keywords|speaker|reviewer|translator|doc"
"""Tags of talks that contain translated text, and those that contain metadata."""
TAGGED = re.compile(
    rf"^\s*</?(?P<tag>{KEPT}|{DROPPED})\b[^>]*>(?P<text>.*?)(?:</(?P=tag)\s*>)?\s*$", re.IGNORECASE
)


def read_segment_pairs(source: Path, target: Path) -> Iterator[tuple[str, str]]:
    """Yield the texts of the segments, in order; the files must have the same documents and segments."""
    segments = zip_longest(read_segments(source), read_segments(target), fillvalue=("its end", ""))
    for (source_place, source_text), (target_place, target_text) in segments:
        if source_place != target_place:
            raise ValueError(
                f"{source} has {source_place} where {target} has {target_place}. Expected the same segments "
                "in the same order: is a download incomplete, or does one belong to another test set?"
            )
        yield source_text, target_text


def read_segments(path: Path) -> list[tuple[str, str]]:
    """Return the place and text of each segment, on one line and with character references resolved."""
    text = "\n".join(read_lines(path))
    document, segments = "", []
    for mark in MARK.finditer(text):
        if mark["document"] is not None:
            document = attribute(mark["document"], "docid")
            continue
        number = attribute(mark["segment"], "id")
        if mark["text"] is None or not number:
            line = text.count("\n", 0, mark.start()) + 1
            raise ValueError(
                f"{path}, line {line}: expected <seg id=NUMBER>text</seg>, found {mark[0]!r}. Is the file "
                "complete?"
            )
        segments.append((f"segment {number} of document {document!r}", one_line(mark["text"])))
    if not segments:
        raise ValueError(f"{path} has no segments. Expected <seg id=...>text</seg> within <doc docid=...>.")
    return segments


def attribute(tag: str, name: str) -> str:
    """Return an attribute's value, quoted or not, from the inside of a tag; "" if it is missing."""
    match = re.search(rf"""\b{name}\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'>]+))""", tag, re.IGNORECASE)
    return "".join(filter(None, match.groups())) if match else ""


def one_line(text: str) -> str:
    """Return a segment's text on one line; whitespace other than line ends is kept."""
    joined = " ".join(line.strip(" \t\r") for line in text.split("\n"))
    resolved = REFERENCE.sub(lambda match: re.sub(r"[\r\n]", " ", html.unescape(match[0])), joined)
    return resolved.strip(" \t")


def read_tagged_pairs(source: Path, target: Path) -> Iterator[tuple[str, str]]:
    """Yield the sentence pairs, titles and descriptions of talks; tags not listed above count as text."""
    for number, pair in enumerate(read_pairs(source, target), start=1):
        (source_tag, source_text), (target_tag, target_text) = map(untag, pair)
        if source_tag != target_tag:
            raise ValueError(
                f"line {number}: {source} has {source_tag} but {target} has {target_tag}. Line i of one must "
                "translate line i of the other: is a file incomplete?"
            )
        if source_tag not in DROPPED.split("|"):
            yield source_text, target_text


def untag(line: str) -> tuple[str, str]:
    """Return the tag around a line, or "no tag", and its text."""
    match = TAGGED.match(line)
    return (match["tag"].lower(), match["text"].strip()) if match else ("no tag", line)
