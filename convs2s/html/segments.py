"""The text of a page that is to be translated, and the rest, which stays as it is, character by character.

A segment is the text between the tags of blocks, such as `<p>`, with the inline elements in it, such as
`<b>`. An element is inline unless a browser makes it a block. Badly nested tags of inline elements are nested
as a browser nests them; one without its counterpart in the segment divides it, as a block's does.
"""

import html
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from itertools import accumulate, pairwise

from convs2s.html.characters import is_translatable
from convs2s.html.elements import FLOW, KEPT_BLOCKS, OBJECTS, RAISED, RAW, VOID
from convs2s.html.layout import find_blocks, find_dividers, is_hidden, is_pair
from convs2s.html.neighbors import part_controls, part_neighbors
from convs2s.html.nesting import Item, is_empty, nest
from convs2s.html.tokens import Token, find_end_of_noscript, find_ends, tokenize
from convs2s.text.words.tokenization import OBJECT

BREAK = "\n"
"""The place in a text of a line break, at which a sentence ends."""
NUMBER = re.compile(r"&#0*([0-9]+)")
SPACES = re.compile(r"[ \t\n\f\r]+")
NO_BREAK_SPACES = ("&nbsp;", "&#160;", "&#xa0;", "&#xA0;")
SPACE = re.compile(rf"(?:\s|{'|'.join(NO_BREAK_SPACES)})*")
ADDRESS = re.compile(r"://|@|\bwww\.")
"""What the text of a link has that is an address to read, not to translate."""
SOFT_HYPHEN = "\xad"
"""Where a word may be divided; it would divide the word for the model, too."""


@dataclass
class Inline:
    """An inline element of a segment, or something else that has its place in the text.

    Attributes:
        opening, closing: its tags, as in the page; an object, a break or a point, such as a comment, has no
            closing tag.
        parent: the number of the element that it is in; the segment itself has number 0.
        start, stop: where it begins and ends in the segment's text.
        is_mark: whether it is an object or a break, which has a mark in the text.
        parts: of an element that is not seen, its tags and what is translated of it; else empty.
    """

    opening: str
    closing: str
    parent: int
    start: int
    stop: int
    is_mark: bool = False
    parts: Sequence["str | Segment"] = ()

    @property
    def is_space(self) -> bool:
        """Whether it is a point that has a space in the text, such as `<b> </b>`."""
        return self.parent >= 0 and not self.closing and not self.is_mark and self.start < self.stop


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


@dataclass
class Line:
    """The inline content between the tags of two blocks, as far as it is read.

    Attributes:
        has_text: whether it has more text than white space.
        may_go_on: whether a block that is not seen may be in it; in a browser such a block ends a `<p>`.
    """

    items: list[Item] = field(default_factory=list)
    has_text: bool = False
    may_go_on: bool = True


def read_page(page: str, in_hidden: bool = False) -> list[str | Segment]:
    """Return the segments of a page or of a part of one, and what is between them; `str` stays as it is.

    Args:
        in_hidden: whether the page is the content of an element that is not seen; others in it are no texts
            of their own.
    """
    tokens = list(tokenize(page))
    ends = find_ends(tokens)
    blocks = find_blocks(tokens, ends)
    dividers = list(find_dividers(tokens, ends))
    parts = list[str | Segment]()
    unclosed = Counter[str]()
    line = Line()
    i = 0
    while i < len(tokens):
        token = tokens[i]
        end = i
        is_in_line = i not in blocks or (token.name in FLOW and line.has_text and line.may_go_on)
        if token.kind == "text":
            add_text(line.items, token.raw, dividers[i])
            line.has_text = line.has_text or not token.raw.isspace()
        elif token.kind in ("code", "other"):
            line.items.append(Item("object" if token.kind == "code" else "point", token.raw))
        elif token.kind == "start" and (token.is_kept or token.name in OBJECTS | KEPT_BLOCKS):
            end = i if token.name in VOID else ends[i]
            raw = join(tokens[i : end + 1])
            is_alone = token.name in VOID or (token.raw.endswith("/>") and token.name not in RAW and end == i)
            is_whole = is_alone or is_pair(tokens, i, end)
            if is_whole and i not in blocks:
                line.items.append(Item("object", raw))
            else:
                parts += [*divide(line.items, unclosed), raw]
                line = Line()
        elif is_in_line and is_hidden(token) and not in_hidden and is_pair(tokens, i, ends[i]):
            end = ends[i]
            inner = join(tokens[i + 1 : end])
            parts_of_it = [token.raw, *read_page(inner, in_hidden=True), tokens[end].raw]
            line.items.append(Item("point", token.raw + inner + tokens[end].raw, parts=parts_of_it))
        elif token.name == "noscript" and (last := find_end_of_noscript(tokens, i)) > i:
            end = last
            line.items.append(Item("point", join(tokens[i : end + 1])))
        elif i in blocks:
            parts += [*divide(line.items, unclosed), token.raw]
            line = Line(may_go_on=(token.kind, token.name) != ("start", "p"))
        elif token.name in VOID:
            line.items.append(Item("break" if token.name == "br" else "point", token.raw))
        else:
            line.items.append(Item("open" if token.kind == "start" else "close", token.raw, token.name))
        i = end + 1
    return [*parts, *divide(line.items, unclosed)]


def add_text(items: list[Item], raw: str, divider: re.Pattern[str] | None) -> None:
    """Add a text to items; in it, each divider is a break."""
    for number, part in enumerate(divider.split(raw) if divider else [raw]):
        rest = part
        if items and items[-1].kind == "break":  # the white space after it is part of it
            space, rest = split_start(part)
            items[-1] = Item("break", items[-1].raw + space)
        if rest:
            is_divider = number % 2 == 1
            items.append(Item("break", rest) if is_divider else make_text(rest))


def divide(items: Sequence[Item], unclosed: Counter[str]) -> Iterator[str | Segment]:
    """Yield the segments of inline content, what is around them, and the tags that divide them.

    Args:
        unclosed: number of the elements by name that are open before it; becomes that after it.
    """
    nested, pairs, ignored = nest(part_neighbors(part_controls(items)), unclosed)
    if not any(is_translatable(item.text) for item in items):
        yield from expand(items)
        return
    stretch = list[Item]()
    for item in merge_empty(nested, pairs, ignored):
        if item.kind == "divider":
            yield from make_segment(stretch)
            yield item.raw
            stretch = []
        else:
            stretch.append(item)
    yield from make_segment(stretch)


def merge_empty(items: Sequence[Item], pairs: Mapping[int, int], ignored: Set[int]) -> Iterator[Item]:
    """Yield the items, where an element without text is one item, and a tag without a counterpart divides."""
    paired = {*pairs, *pairs.values()}

    def count(test: Callable[[Item], bool]) -> list[int]:
        """Return, for each place between items, how many before it pass a test."""
        return list(accumulate(map(test, items), initial=0))

    filled = count(lambda item: item.kind == "text" and bool(item.text.strip()))
    spaced = count(lambda item: item.kind == "text" and bool(item.text))
    lettered = count(lambda item: is_translatable(item.text))
    objects = count(lambda item: item.kind == "object")
    breaks = count(lambda item: item.kind == "break")
    i = 0
    while i < len(items):
        item = items[i]
        end = i
        if item.kind in ("open", "close") and i not in paired:
            yield Item("point" if is_empty(item) or i in ignored else "divider", item.raw)
        elif item.kind != "open":
            yield item
        else:
            end = pairs[i]
            has_text = filled[end] > filled[i]
            is_raised = item.name in RAISED and lettered[end] == lettered[i]
            is_link = item.name == "a"
            if has_text and not is_raised and not (is_link and is_address(join_text(items[i:end]))):
                yield item
                end = i
            else:
                raw = join(items[i : end + 1])
                parts = list(expand(items[i : end + 1]))
                parts = parts if len(parts) > 1 else []
                space = " " if spaced[end] > spaced[i] else ""
                if breaks[end] > breaks[i]:
                    yield Item("break", raw, parts=parts)
                elif has_text or objects[end] > objects[i]:
                    yield Item("object", raw, parts=parts)
                else:
                    yield Item("point", raw, text=space, parts=parts)
        i = end + 1


def is_address(text: str) -> bool:
    """Return whether the text of a link is an address to read, not to translate."""
    return ADDRESS.search(text) is not None and len(text.split()) == 1


def make_segment(items: Sequence[Item]) -> Iterator[str | Segment]:
    """Yield the segment of items, if they have letters, and what is before and after it."""
    begin = 0
    end = len(items)
    while begin < end and is_margin(items[begin]):
        begin += 1
    while begin < end and is_margin(items[end - 1]):
        end -= 1
    before = ""
    after = ""
    inner = list(items[begin:end])
    if inner and inner[0].kind == "text":
        before, rest = split_start(inner[0].raw)
        inner[0] = make_text(rest)
    if inner and inner[-1].kind == "text":
        rest, after = split_end(inner[-1].raw)
        inner[-1] = make_text(rest)
    segment = build_segment(attach_spaces(inner))
    if is_translatable(segment.text):
        yield from expand([*items[:begin], Item("text", before)])
        yield segment
        yield from expand([Item("text", after), *items[end:]])
    else:
        yield from expand(items)


def attach_spaces(items: Sequence[Item]) -> list[Item]:
    """Return items, where white space after an element without text, if something follows, is part of it.

    Such an element may be an icon, as in `<i class="home"></i> Home`, which is shown apart from the word.
    """
    attached = list[Item]()
    for item, following in pairwise([*items, Item("close", "")]):
        space = SPACES.match(item.raw) if item.kind == "text" else None
        rest = item.raw[space.end() :] if space else ""
        is_end = not rest and following.kind == "close"
        if space and not is_end and attached and may_be_icon(attached[-1]):
            attached[-1] = Item("point", attached[-1].raw + space[0], text=" ")
            attached.append(make_text(rest))
        else:
            attached.append(item)
    return attached


def may_be_icon(item: Item) -> bool:
    """Return whether an item is an element that style sheets may show: no comment, nor what is hidden."""
    return item.kind == "point" and item.raw[1:2].isalpha() and item.raw.endswith(">") and not item.parts


def build_segment(items: Iterable[Item]) -> Segment:
    """Return the segment of items in which all tags are properly nested."""
    text = list[str]()
    owners = list[int]()
    inlines = [Inline("", "", -1, 0, 0)]
    opened = [0]
    ended = list[Inline]()  # that ended where the text does so far

    def write(written: str) -> None:
        """Add to the text, in the innermost element that is open."""
        if written:
            ended.clear()
        text.extend(written)
        owners.extend([opened[-1]] * len(written))

    def add(raw: str, mark: str = "", parts: Sequence[str | Segment] = ()) -> None:
        """Add what begins here, with its mark or the space that it has in the text."""
        is_mark = mark in (OBJECT, BREAK)
        inlines.append(Inline(raw, "", opened[-1], len(text), len(text) + len(mark), is_mark, parts))
        write(mark)

    for item in items:
        if item.kind == "open":
            add(item.raw)
            opened.append(len(inlines) - 1)
        elif item.kind == "close":
            inline = inlines[opened.pop()]
            inline.closing = item.raw
            inline.stop = len(text)
            ended.append(inline)
        elif item.kind == "text":
            for number, part in enumerate(item.text.split(OBJECT)):
                if number:
                    add(OBJECT, OBJECT)
                if part.startswith(" ") and text and text[-1] == " ":
                    # This space may be seen where that at the end of an element is hidden.
                    for inline in ended:
                        inline.stop -= inline.start < inline.stop
                    ended.clear()
                write(part.lstrip(" ") if text and text[-1] == " " else part)
        else:
            has_space = not text or text[-1] in (" ", BREAK)
            point = "" if has_space else item.text
            add(item.raw, {"object": OBJECT, "break": BREAK}.get(item.kind, point), item.parts)
            if item.kind == "point":
                ended.append(inlines[-1])
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


def expand(items: Iterable[Item]) -> Iterator[str | Segment]:
    """Yield items outside of a segment: as they are, but for the text of elements that are not seen."""
    parts = (part for item in items for part in item.parts or [item.raw])
    text = ""
    for part in parts:
        if isinstance(part, str):
            text += part
        else:
            yield from (text, part)
            text = ""
    yield text


def join(pieces: Iterable[Item | Token]) -> str:
    """Return items or tokens as in the page."""
    return "".join(piece.raw for piece in pieces)


def join_text(items: Iterable[Item]) -> str:
    """Return the text of items, as the browser shows it."""
    return "".join(item.text for item in items)
