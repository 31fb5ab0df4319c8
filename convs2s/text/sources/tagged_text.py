"""Text within tags: test sets in SGML (WMT's .sgm, IWSLT's .xml), and WIT3's talks (train.tags.*)."""

import html
import re
from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path
from typing import NamedTuple

from convs2s.base.files import read_lines, read_pairs

SEGMENTED_FILE = re.compile(r".*\.(sgml?|xml)(\.(gz|bz2|xz|zst))?", re.IGNORECASE)
# The start of a document, or a segment: up to its end tag, if that comes before anything else starts.
MARK = re.compile(
    r"<doc\b(?P<document>[^>]*)>|<seg\b(?P<segment>[^>]*)>(?:(?P<text>(?:(?!<seg\b|<doc\b|</doc\b).)*?)</seg\s*>)?",
    re.IGNORECASE | re.DOTALL,
)
# XML's five entities, and numbers. HTML has thousands, many without a semicolon; "AT&T" is not a reference.
REFERENCE = re.compile(r"&(?:amp|lt|gt|quot|apos|#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6});")
KEPT = ("title", "description")
"""Tags of talks that contain translated text."""
DROPPED = ("url", "talkid", "keywords", "speaker", "reviewer", "translator", "doc")
"""Tags that contain metadata of the talk."""
TAGGED = re.compile(
    rf"^\s*</?(?P<tag>{'|'.join((*KEPT, *DROPPED))})\b[^>]*>(?P<text>.*?)(?:</(?P=tag)\s*>)?\s*$",
    re.IGNORECASE,
)


class Segment(NamedTuple):
    """A segment: usually one sentence."""

    document: str
    number: str
    text: str


def format_of(path: Path) -> str:
    """Return the format that a file's name implies: "segments", "talks" or "plain"."""
    if SEGMENTED_FILE.fullmatch(path.name):
        return "segments"
    return "talks" if path.name.startswith("train.tags.") else "plain"


def read_segment_pairs(source: Path, target: Path) -> Iterator[tuple[str, str]]:
    """Yield the texts of segments that have the same document and number, in the files' order.

    Raises:
        ValueError: if a file is not such SGML, its segments are not in ascending order, or the files have
            different segments.
    """
    end = Segment("none", "none", "")
    for ours, theirs in zip_longest(read_segments(source), read_segments(target), fillvalue=end):
        if ours[:2] != theirs[:2]:
            raise ValueError(
                f"{source} has segment {ours.number} of document {ours.document!r} where {target} has segment"
                f" {theirs.number} of document {theirs.document!r}. Expected the same segments in the same "
                "order: is a download incomplete, or does one belong to another test set?"
            )
        yield ours.text, theirs.text


def read_segments(path: Path) -> list[Segment]:
    """Read the segments of a file; each becomes one line, with character references resolved.

    Raises:
        ValueError: if there are no segments, one has no end or no number, or they are not in ascending order.
    """
    text = "\n".join(read_lines(path))
    document, last, found = "", 0, list[Segment]()
    for mark in MARK.finditer(text):
        if mark["document"] is not None:
            document, last = attribute(mark["document"], "docid"), 0
            continue
        number = attribute(mark["segment"], "id")
        if mark["text"] is None or not number.isdecimal() or int(number) <= last:
            line = text.count("\n", 0, mark.start()) + 1
            raise ValueError(
                f"{path}, line {line}: expected <seg id=NUMBER>text</seg> with a number above {last} in "
                f"document {document!r}, found {mark[0]!r}. Is the file complete, or was it concatenated or "
                "sorted?"
            )
        last = int(number)
        found.append(Segment(document, number, one_line(mark["text"])))
    if not found:
        raise ValueError(f"{path} has no segments. Expected <seg id=...>text</seg> within <doc docid=...>.")
    return found


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
    """Yield the sentence pairs, titles and descriptions of talks; tags not listed above count as text.

    Raises:
        ValueError: if line i of the two files has different tags, or as `read_pairs`.
    """
    for number, (ours, theirs) in enumerate(read_pairs(source, target), start=1):
        (our_tag, our_text), (their_tag, their_text) = untag(ours), untag(theirs)
        if our_tag != their_tag:
            raise ValueError(
                f"line {number}: {source} has {our_tag} but {target} has {their_tag}. Line i of one must "
                "translate line i of the other: is a file incomplete?"
            )
        if our_tag not in DROPPED:
            yield our_text, their_text


def untag(line: str) -> tuple[str, str]:
    """Return the tag around a line, or "no tag", and its text."""
    match = TAGGED.match(line)
    return (match["tag"].lower(), match["text"].strip()) if match else ("no tag", line)
