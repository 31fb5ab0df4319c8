"""Badly nested inline tags, such as `<b>one <i>two</b> three</i>`, are nested as browsers nest them."""

from collections import Counter
from collections.abc import Mapping, Sequence, Set
from itertools import accumulate
from typing import Any, Literal, NamedTuple

from convs2s.html.elements import FORMATTING

MOST_REOPENED = 3
"""Elements that an end tag is badly nested with; with more, its tag divides. It limits what is added."""
DEEPEST = 100
"""Inline elements in each other; the tags of those further inside divide."""


class Item(NamedTuple):
    """A piece of a stretch of inline content: a token, or a whole element that stays as it is."""

    kind: Literal["text", "open", "close", "object", "break", "point", "divider"]
    raw: str
    name: str = ""
    text: str = ""
    """As the browser shows it, with single spaces; of an element without text, a space if it has one."""
    parts: Sequence[Any] = ()
    """Of an element that is not seen, what `read_page` returns of it: its text is no part of the sentence."""


class Nesting:
    """Nests the tags of inline content as browsers do by the adoption agency algorithm (§13.2.6.4.7).

    An end tag also ends what has begun in its element and not ended; elements of `FORMATTING` begin again
    after it. A link ends the link that it is in. End tags of what is not open are ignored.

    Attributes:
        items: with the tags that are added.
        pairs: the indices of both tags of each element.
        ignored: the indices of the end tags that browsers ignore.
        opened: the indices of the start tags without an end tag.
        reopened: the start tags that are written before whatever follows.

    Args:
        unclosed: number of the elements by name that are open before the content.
        most_reopened: elements that an end tag may be badly nested with; with more, it has no counterpart.
    """

    def __init__(self, unclosed: Mapping[str, int], most_reopened: int) -> None:
        self.items = list[Item]()
        self.pairs = dict[int, int]()
        self.ignored = set[int]()
        self.opened = list[int]()
        self.reopened = list[Item]()
        self._unclosed = Counter(unclosed)
        self._most_reopened = most_reopened

    def add(self, item: Item) -> None:
        """Add the next item."""
        if item.kind == "close":
            self._close(item)
            return
        if item.kind == "open" and item.name == "a" and not is_empty(item):
            open_links = [i for i in self.opened[-1 - self._most_reopened :] if self.items[i].name == "a"]
            if self._most_reopened and open_links and not is_empty(self.items[open_links[-1]]):
                self._close(Item("close", "</a>", "a"))
        if item.kind != "point":
            for start_tag in self.reopened:
                self._open(start_tag)
            self.reopened = []
        if item.kind == "open":
            self._open(item)
        else:
            self.items.append(item)

    def _open(self, item: Item) -> None:
        if len(self.opened) < DEEPEST:
            self.opened.append(len(self.items))
        self.items.append(item)

    def _close(self, item: Item) -> None:
        if again := [start_tag for start_tag in self.reopened if start_tag.name == item.name]:
            self.reopened.remove(again[-1])  # an end tag has been written
            return
        while self.opened and self._is_empty(-1) and self._name(-1) != item.name:
            self.opened.pop()
        depth = 1  # of the element among those that are open
        deepest = min(len(self.opened), 1 + self._most_reopened)
        while depth <= deepest and self._name(-depth) != item.name:
            depth += 1
        if depth > deepest:
            if not self._unclosed[item.name] and all(self.items[i].name != item.name for i in self.opened):
                self.ignored.add(len(self.items))
            self._unclosed[item.name] -= self._unclosed[item.name] > 0
            self.items.append(item)
            return
        for _ in range(depth - 1):
            if not self._is_empty(-1):
                start_tag = self.items[self.opened[-1]]
                if start_tag.name in FORMATTING:
                    self.reopened.insert(0, start_tag)
                self._end(Item("close", f"</{start_tag.name}>", start_tag.name))
            else:
                self.opened.pop()
        self._end(item)

    def _end(self, end_tag: Item) -> None:
        self.pairs[self.opened.pop()] = len(self.items)
        self.items.append(end_tag)

    def _name(self, depth: int) -> str:
        return self.items[self.opened[depth]].name

    def _is_empty(self, depth: int) -> bool:
        return is_empty(self.items[self.opened[depth]])


def is_empty(item: Item) -> bool:
    """Return whether a tag may be a whole element of XHTML, such as <a id="top"/>; in HTML it is not."""
    return item.kind == "open" and item.raw.endswith("/>")


def nest(items: Sequence[Item], unclosed: Counter[str]) -> tuple[list[Item], dict[int, int], Set[int]]:
    """Return items with nested tags; the indices of both tags of each element that no tag divides; and of
    the end tags that are ignored.

    Args:
        unclosed: as for `divide`.
    """
    nesting = Nesting(unclosed, MOST_REOPENED)
    for item in items:
        nesting.add(item)
    if nesting.reopened:  # in the next block: these tags stay as they are
        nesting = Nesting(unclosed, 0)
        for item in items:
            nesting.add(item)
    for i in nesting.opened:
        unclosed[nesting.items[i].name] += not is_empty(nesting.items[i])
    paired = {*nesting.pairs, *nesting.pairs.values()}
    dividers = list(
        accumulate(
            item.kind in ("open", "close")
            and i not in paired
            and i not in nesting.ignored
            and not is_empty(item)
            for i, item in enumerate(nesting.items)
        )
    )
    pairs = {start: end for start, end in nesting.pairs.items() if dividers[start] == dividers[end]}
    return nesting.items, pairs, nesting.ignored
