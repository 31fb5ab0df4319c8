"""HTML: the text to translate, and the rest, which stays as it is, character by character.

A page is read by the tokens of the HTML standard (§13.2.5), which make any text a page. Parsers that build a
tree, such as lxml and html5lib, repair what is broken and forget how it was written. Python's html.parser
keeps the text, but fails on `<![n`, takes 16 s for 24 kB of `<a `, and reads comments and scripts differently
from one patch release to the next. So the tokens are a regular expression here. Each of them ends at the end
of the page at the latest, so that the time is linear in the size of the page.

A segment is the text between the tags of blocks, such as `<p>`, with the inline elements in it, such as
`<b>`. An inline tag without its counterpart in the segment, or badly nested, divides it, as a block's does.
"""

import html
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Literal, NamedTuple

from convs2s.text.words.tokenization import OBJECT

BREAK = "\n"
"""The place in a text of a line break, at which a sentence ends."""

# fmt: off
VOID = {
    "area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param", "source", "track",
    "wbr",
}
"""Elements without content and end tag."""
RAW = {"iframe", "noembed", "noframes", "plaintext", "script", "style", "textarea", "xmp"}
"""Elements whose content has no tags; it ends at their end tag."""
OBJECTS = RAW | {
    "audio", "canvas", "code", "embed", "img", "input", "kbd", "map", "math", "object", "picture", "rp", "rt",
    "samp", "svg", "tt", "var", "video",
}
"""Inline elements that stay as they are, with their content."""
INLINE = {
    "a", "abbr", "acronym", "b", "bdi", "bdo", "big", "cite", "data", "del", "dfn", "em", "font", "i", "ins",
    "label", "mark", "nobr", "q", "rb", "ruby", "s", "small", "span", "strike", "strong", "sub", "sup",
    "time", "u",
}
"""Inline elements whose text is translated. All that are not listed are blocks."""
KEPT_BLOCKS = {"listing", "pre"}
"""Blocks that stay as they are: their layout is that of their characters, and most are code."""
RAISED = {"sub", "sup"}
"""Elements that stay as they are if they have no letters: exponents, numbers of footnotes."""
# fmt: on
DEEPEST = 100
"""Inline elements in each other; the tags of those further inside divide."""

TOKEN = re.compile(
    r"""
    <!--(?:-?>|.*?(?:--!?>|\Z))                       # a comment
    | <(?:[!?]|/(?![a-zA-Z]))[^>]*(?:>|\Z)            # the doctype, and what browsers take for a comment
    | <(?P<slash>/?)(?P<name>[a-zA-Z][^ \t\n\f\r/>]*)
      (?P<attributes>(?:
          [ \t\n\f\r/]+
          | [^ \t\n\f\r/>][^ \t\n\f\r/>=]*            # a name, and perhaps a value
            (?:[ \t\n\f\r]*=[ \t\n\f\r]*(?:"[^"]*(?:"|\Z)|'[^']*(?:'|\Z)|[^ \t\n\f\r>]*))?
      )*)
      (?P<end>>?)
    | (?P<text>(?:[^<]+|<(?![a-zA-Z!?/]))+)
    """,
    re.VERBOSE | re.DOTALL,
)
ATTRIBUTE = re.compile(
    r"""([^ \t\n\f\r/>][^ \t\n\f\r/>=]*)(?:[ \t\n\f\r]*=[ \t\n\f\r]*("[^"]*|'[^']*|[^ \t\n\f\r>]*))?"""
)
END_OF_RAW = {name: re.compile(rf"</{name}(?=[ \t\n\f\r/>])", re.IGNORECASE) for name in RAW}
NUMBER = re.compile(r"&#0*([0-9]+)")
SPACES = re.compile(r"[ \t\n\f\r]+")
NO_BREAK_SPACES = ("&nbsp;", "&#160;", "&#xa0;", "&#xA0;")
SPACE = re.compile(rf"(?:\s|{'|'.join(NO_BREAK_SPACES)})*")
TRANSLATABLE = re.compile(r"\b[a-zA-Z]+\b|[^\W\d_a-zA-Z]")
"""A word without digits, or a letter of a script that may have no spaces between words and digits."""
ADDRESS = re.compile(r"\S*(?:://|@|\bwww\.)\S*")
"""The text of a link that is one to read, not to translate."""
SOFT_HYPHEN = "\xad"
"""Where a word may be divided; it would divide the word for the model, too."""


class Token(NamedTuple):
    """A piece of a page.

    Attributes:
        kind: other is what browsers do not show: comments, and the content of scripts.
        raw: as in the page.
        name: of a tag, in lower case.
        is_kept: whether the tag says that its element must not be translated.
    """

    kind: Literal["text", "start", "end", "other"]
    raw: str
    name: str = ""
    is_kept: bool = False


class Item(NamedTuple):
    """A piece of a stretch of inline content: a token, or a whole element that stays as it is."""

    kind: Literal["text", "open", "close", "object", "break", "point", "divider"]
    raw: str
    name: str = ""
    text: str = ""
    """As the browser shows it, with single spaces."""


@dataclass
class Inline:
    """An inline element of a segment, or something else that has its place in the text.

    Attributes:
        opening, closing: its tags, as in the page; an object, a break or a point, such as a comment, has no
            closing tag.
        parent: the number of the element that it is in; the segment itself has number 0.
        start, stop: where it begins and ends in the segment's text.
    """

    opening: str
    closing: str
    parent: int
    start: int
    stop: int

    @property
    def is_mark(self) -> bool:
        """Whether it is an object or a break, which has a mark in the text."""
        return self.parent >= 0 and not self.closing and self.start < self.stop


@dataclass(frozen=True)
class Segment:
    """Text to translate.

    Attributes:
        text: without tags; an object or a break is one character, `OBJECT` or `BREAK`.
        owners: for each character, the number of the innermost element that it is in.
        inlines: the segment itself, then what is in it, in the order of their openings.
    """

    text: str
    owners: list[int] = field(repr=False)
    inlines: list[Inline]


def read_page(page: str) -> list[str | Segment]:
    """Return the segments of a page or of a part of one, and what is between them; `str` stays as it is."""
    tokens = list(tokenize(page))
    ends = find_ends(tokens)
    parts = list[str | Segment]()
    items = list[Item]()
    i = 0
    while i < len(tokens):
        token = tokens[i]
        end = i
        if token.kind == "text":
            raw = token.raw
            if items and items[-1].kind == "break":  # the white space after it is part of it
                space, raw = split_start(raw)
                items[-1] = Item("break", items[-1].raw + space)
            items.append(make_text(raw))
        elif token.kind == "other" or token.name == "wbr":
            items.append(Item("point", token.raw))
        elif token.kind == "start" and (token.is_kept or token.name in OBJECTS | KEPT_BLOCKS):
            end = i if token.name in VOID else ends[i]
            raw = "".join(part.raw for part in tokens[i : end + 1])
            is_whole = token.name in VOID or (tokens[end].kind, tokens[end].name) == ("end", token.name)
            if is_whole and token.name in OBJECTS | INLINE | VOID:
                items.append(Item("object", raw))
            else:
                parts += [*divide(items), raw]
                items = []
        elif token.name == "br" and token.kind == "start":
            items.append(Item("break", token.raw))
        elif token.name in INLINE:
            items.append(Item("open" if token.kind == "start" else "close", token.raw, token.name))
        else:
            parts += [*divide(items), token.raw]
            items = []
        i = end + 1
    return [*parts, *divide(items)]


def tokenize(page: str) -> Iterator[Token]:
    """Yield the tokens of a page; joined, they are the page."""
    position = 0
    while match := TOKEN.match(page, position):
        raw = match[0]
        position = match.end()
        if match["text"]:
            yield Token("text", raw)
            continue
        if not match["end"]:  # a comment, or a tag that the page's end cuts off
            yield Token("other", raw)
            continue
        name = match["name"].lower()
        if match["slash"]:
            yield Token("end", raw, name)
            continue
        yield Token("start", raw, name, forbids_translation(match["attributes"]))
        if name in RAW:
            end = END_OF_RAW[name].search(page, position)
            stop = end.start() if end and name != "plaintext" else len(page)
            if stop > position:
                yield Token("other", page[position:stop])
            position = stop


def forbids_translation(attributes: str) -> bool:
    """Return whether a tag has translate="no", or the class notranslate that services of translation know."""
    if "translate" not in attributes.lower():
        return False
    for name, value in ATTRIBUTE.findall(attributes):
        words = value.strip("\"'").lower().split()
        if name.lower() == "translate" and words == ["no"]:
            return True
        if name.lower() == "class" and "notranslate" in words:
            return True
    return False


def find_ends(tokens: Sequence[Token]) -> dict[int, int]:
    """Return, for each start tag, the index of its end tag; without one, of the last token of its block."""
    ends = dict[int, int]()
    open_tags = defaultdict[str, list[int]](list)
    for i, token in enumerate(tokens):
        if token.kind == "start":
            open_tags[token.name].append(i)
        elif token.kind == "end" and open_tags[token.name]:
            ends[open_tags[token.name].pop()] = i
    end_of_block = len(tokens) - 1
    for i in range(len(tokens) - 1, -1, -1):
        token = tokens[i]
        if token.kind == "start":
            ends.setdefault(i, end_of_block)
        if token.name and token.name not in INLINE | OBJECTS | {"br", "wbr"}:
            end_of_block = i - 1
    return ends


def divide(items: Sequence[Item]) -> Iterator[str | Segment]:
    """Yield the segments of inline content, what is around them, and the tags that divide them."""
    stretch = list[Item]()
    for item in merge_empty(items, pair_tags(items)):
        if item.kind == "divider":
            yield from make_segment(stretch)
            yield item.raw
            stretch = []
        else:
            stretch.append(item)
    yield from make_segment(stretch)


def pair_tags(items: Sequence[Item]) -> dict[int, int]:
    """Return the indices of both tags of each element that no tag without a counterpart divides."""
    pairs = dict[int, int]()
    opened = list[int]()
    for i, item in enumerate(items):
        if item.kind == "open" and len(opened) < DEEPEST:
            opened.append(i)
        elif item.kind == "close":
            while opened and is_empty(items[opened[-1]]) and items[opened[-1]].name != item.name:
                opened.pop()
            if opened and items[opened[-1]].name == item.name:
                pairs[opened.pop()] = i
    paired = {*pairs, *pairs.values()}
    dividers = list(
        accumulate(
            item.kind in ("open", "close") and i not in paired and not is_empty(item)
            for i, item in enumerate(items)
        )
    )
    return {start: end for start, end in pairs.items() if dividers[start] == dividers[end]}


def is_empty(item: Item) -> bool:
    """Return whether a tag may be a whole element of XHTML, such as <a id="top"/>; in HTML it is not."""
    return item.kind == "open" and item.raw.endswith("/>")


def merge_empty(items: Sequence[Item], pairs: Mapping[int, int]) -> Iterator[Item]:
    """Yield the items, where an element without text is one item, and a tag without a counterpart divides."""
    paired = {*pairs, *pairs.values()}

    def count(test: Callable[[Item], bool]) -> list[int]:
        return list(accumulate(map(test, items), initial=0))

    filled = count(lambda item: item.kind == "text" and bool(item.text.strip()))
    lettered = count(lambda item: is_translatable(item.text))
    objects = count(lambda item: item.kind == "object")
    breaks = count(lambda item: item.kind == "break")
    i = 0
    while i < len(items):
        item = items[i]
        end = i
        if item.kind in ("open", "close") and i not in paired:
            yield Item("point" if is_empty(item) else "divider", item.raw)
        elif item.kind != "open":
            yield item
        else:
            end = pairs[i]
            has_text = filled[end] > filled[i]
            is_raised = item.name in RAISED and lettered[end] == lettered[i]
            is_address = item.name == "a" and ADDRESS.fullmatch(join_text(items[i:end]).strip())
            if has_text and not is_raised and not is_address:
                yield item
                end = i
            else:
                raw = join(items[i : end + 1])
                if breaks[end] > breaks[i]:
                    yield Item("break", raw)
                else:
                    yield Item("object" if has_text or objects[end] > objects[i] else "point", raw)
        i = end + 1


def make_segment(items: Sequence[Item]) -> Iterator[str | Segment]:
    """Yield the segment of items, if they have letters, and what is before and after it."""
    begin = 0
    end = len(items)
    while begin < end and is_margin(items[begin]):
        begin += 1
    while begin < end and is_margin(items[end - 1]):
        end -= 1
    before = join(items[:begin])
    after = join(items[end:])
    inner = list(items[begin:end])
    if inner and inner[0].kind == "text":
        space, rest = split_start(inner[0].raw)
        before += space
        inner[0] = make_text(rest)
    if inner and inner[-1].kind == "text":
        rest, space = split_end(inner[-1].raw)
        after = space + after
        inner[-1] = make_text(rest)
    segment = build_segment(inner)
    if is_translatable(segment.text):
        yield from (before, segment, after)
    else:
        yield join(items)


def build_segment(items: Sequence[Item]) -> Segment:
    """Return the segment of items in which all tags are properly nested."""
    text = list[str]()
    owners = list[int]()
    inlines = [Inline("", "", -1, 0, 0)]
    opened = [0]

    def write(written: str) -> None:
        text.extend(written)
        owners.extend([opened[-1]] * len(written))

    def add(raw: str, mark: str = "") -> None:
        inlines.append(Inline(raw, "", opened[-1], len(text), len(text) + len(mark)))
        write(mark)

    for item in items:
        if item.kind == "open":
            add(item.raw)
            opened.append(len(inlines) - 1)
        elif item.kind == "close":
            inline = inlines[opened.pop()]
            inline.closing = item.raw
            inline.stop = len(text)
        elif item.kind == "text":
            for number, part in enumerate(item.text.split(OBJECT)):
                if number:
                    add(OBJECT, OBJECT)
                write(part.lstrip(" ") if not text or text[-1] in (" ", BREAK) else part)
        else:
            add(item.raw, {"object": OBJECT, "break": BREAK}.get(item.kind, ""))
    inlines[0].stop = len(text)
    return Segment("".join(text), owners, inlines)


def is_margin(item: Item) -> bool:
    """Return whether an item, at the start or the end of a stretch, is not part of its text."""
    return item.kind in ("point", "break") or (item.kind == "text" and not item.text.strip())


def split_start(raw: str) -> tuple[str, str]:
    """Return the white space at the start of a text, and the rest."""
    start = SPACE.match(raw).end()  # type: ignore[union-attr]  # it always matches
    return raw[:start], raw[start:]


def split_end(raw: str) -> tuple[str, str]:
    """Return a text without the white space at its end, and that."""
    end = len(raw)
    while end:
        space = next((name for name in NO_BREAK_SPACES if raw.endswith(name, 0, end)), "")
        if not space and not raw[end - 1].isspace():
            break
        end -= len(space) or 1
    return raw[:end], raw[end:]


def make_text(raw: str) -> Item:
    """Return a text as the browser shows it: characters for references, single spaces, no soft hyphens."""
    # Python converts no numbers of thousands of digits; no character has more than seven.
    shortened = NUMBER.sub(lambda number: f"&#{number[1][:8]}", raw)
    return Item("text", raw, text=SPACES.sub(" ", html.unescape(shortened)).replace(SOFT_HYPHEN, ""))


def join(items: Iterable[Item]) -> str:
    """Return items as in the page."""
    return "".join(item.raw for item in items)


def join_text(items: Iterable[Item]) -> str:
    """Return the text of items, as the browser shows it."""
    return "".join(item.text for item in items)


def is_translatable(text: str) -> bool:
    """Return whether there is anything to translate: a word, not only numbers, dates or names such as A4."""
    return TRANSLATABLE.search(text) is not None
