"""What a page's own layout says of its text: where a line of text ends.

Only the attributes `style` and `hidden` are read. Style sheets would need an engine of CSS.
"""

import re
from collections.abc import Iterator, Mapping, Sequence, Set

from convs2s.html.elements import BLOCKS
from convs2s.html.tokens import Token

BLOCK = re.compile(r"block|flex|grid|flow-root|list-item|table.*|-(?:webkit|moz)-(?:box|flex)")
"""Values of `display` that make an element a block; inline-block, for example, leaves it in its line."""
LINE_END = r"\r?\n|\r|&#(?:0*10|[xX]0*[aA]);"
GAP = re.compile(rf"([ \t]*(?:{LINE_END})|[ \t]{{2,}}|\t)")
"""A line end, or the space between columns."""
DIVIDERS = {"pre": GAP, "pre-wrap": GAP, "break-spaces": GAP, "pre-line": re.compile(f"({LINE_END})")}
"""What of white space is seen as more than a space and ends a text, by the value of `white-space`."""


def is_hidden(token: Token) -> bool:
    """Return whether a start tag says that its element is not seen."""
    return token.style.get("display") == "none"


def is_pair(tokens: Sequence[Token], start: int, end: int) -> bool:
    """Return whether the tokens with these indices are the tags of an element."""
    return (tokens[start].kind, tokens[end].kind, tokens[end].name) == ("start", "end", tokens[start].name)


def find_blocks(tokens: Sequence[Token], ends: Mapping[int, int]) -> Set[int]:
    """Return the indices of the tags at which a text ends: those of blocks.

    Of blocks, a `<div>` may be made a part of a line; a list item in a line is still an item.

    Args:
        ends: from `find_ends`.
    """
    blocks = {i for i, token in enumerate(tokens) if token.name in BLOCKS}
    for i, token in enumerate(tokens):
        display = token.style.get("display", "")
        end = ends.get(i, i)
        if BLOCK.fullmatch(display):
            blocks |= {i, end} if is_pair(tokens, i, end) else {i}
        elif display == "inline" and token.name == "div" and is_pair(tokens, i, end):
            blocks -= {i, end}
    return blocks


def find_dividers(tokens: Sequence[Token], ends: Mapping[int, int]) -> Iterator[re.Pattern[str] | None]:
    """Yield, for each token, what of white space ends a text there; None: nothing.

    Args:
        ends: from `find_ends`.
    """
    # the ends of elements that say something of white space, and what they say
    opened: list[tuple[int, re.Pattern[str] | None]] = [(len(tokens), None)]
    for i, token in enumerate(tokens):
        while opened[-1][0] < i:
            opened.pop()
        yield opened[-1][1]
        if "white-space" in token.style:
            opened.append((ends.get(i, i), DIVIDERS.get(token.style["white-space"])))
