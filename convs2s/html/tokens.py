"""The tokens of a page: tags, texts, and what browsers do not show; and where each element ends.

A page is read by the tokens of the HTML standard (§13.2.5), which make any text a page. Each token ends at
the end of the page at the latest, so that the time is linear in the size of the page.

Libraries that were tried build a tree and forget how it was written: all write `<P ID=x>` as `<p id="x">`.
selectolax 1.0 (lexbor) and html5lib 1.1 nest badly nested tags as the standard does, but drop others, such as
a `<td>` outside of a table, and do not say where a text was. lxml 6.1 and Beautiful Soup 4.15, with its
default parser, nest `<b>one <i>two</b> three</i>` in their own way; they know the line of an element or the
offset of its start tag, but neither its end tag's nor a text's. Their time for nested `<a><b>` grows faster
than the page with each but lxml. Python's html.parser keeps the text, but fails on `<![n`, takes 16 s for 24
kB of `<a `, and reads comments and scripts differently from one patch release to the next.
"""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Literal, NamedTuple

from convs2s.html.elements import BLOCKS, FOREIGN, RAW

TOKEN = re.compile(
    r"""
    <!--(?:-?>|.*?(?:--!?>|\Z))                       # a comment
    | (?P<code><\?(?:php\b|=)(?:(?!<\?|\?>).)*\?>      # code of a template, which may have > and tags in it
      | <%(?:(?!<%|%>).)*%>)
    | <(?:[!?]|/(?![a-zA-Z]))[^>]*(?:>|\Z)            # the doctype, and what browsers take for a comment
    | <(?P<slash>/?)(?P<name>[a-zA-Z][^ \t\n\f\r/>]*)
      (?P<attributes>(?:
          [ \t\n\f\r/]+
          | [^ \t\n\f\r/>][^ \t\n\f\r/>=]*            # a name, and perhaps a value
            (?:[ \t\n\f\r]*=[ \t\n\f\r]*(?:"[^"]*(?:"|\Z)|'[^']*(?:'|\Z)|[^ \t\n\f\r>]*))?
      )*)
      (?P<end>>?)
    | (?P<text>(?:[^<]+|<(?![a-zA-Z!?/%])|<%(?!(?:(?!<%|%>).)*%>))+)
    """,
    re.VERBOSE | re.DOTALL,
)
ATTRIBUTE = re.compile(
    r"""([^ \t\n\f\r/>][^ \t\n\f\r/>=]*)(?:[ \t\n\f\r]*=[ \t\n\f\r]*("[^"]*|'[^']*|[^ \t\n\f\r>]*))?"""
)
LAYOUT = re.compile(r"(?<![^\s;])(display|white-space)\s*:\s*([a-z-]+)")
MAY_HAVE_STYLE = re.compile("style|hidden", re.IGNORECASE)
NO_STYLE: Mapping[str, str] = MappingProxyType({})
END_OF_RAW = {name: re.compile(rf"</{name}(?=[ \t\n\f\r/>])", re.IGNORECASE) for name in RAW}
IN_SCRIPT = re.compile(r"<!--|-->|<(?P<slash>/?)script(?=[ \t\n\f\r/>])", re.IGNORECASE)
"""What decides where a script ends (§13.2.5.15 to 13.2.5.31)."""


class Token(NamedTuple):
    """A piece of a page.

    Attributes:
        kind: code is that of a template; other is what browsers do not show: comments, and the content of
            scripts.
        raw: as in the page.
        name: of a tag, in lower case.
        is_kept: whether the tag says that its element must not be translated.
        style: what its attributes say of the layout of text: values of `display` and `white-space`.
    """

    kind: Literal["text", "start", "end", "code", "other"]
    raw: str
    name: str = ""
    is_kept: bool = False
    style: Mapping[str, str] = NO_STYLE


def tokenize(page: str) -> Iterator[Token]:
    """Yield the tokens of a page; joined, they are the page."""
    position = 0
    while match := TOKEN.match(page, position):
        raw = match[0]
        position = match.end()
        if match["text"]:
            yield Token("text", raw)
            continue
        if match["code"]:
            yield Token("code", raw)
            continue
        if not match["end"]:  # a comment, or a tag that the page's end cuts off
            yield Token("other", raw)
            continue
        name = match["name"].lower()
        if match["slash"]:
            yield Token("end", raw, name)
            continue
        attributes = match["attributes"]
        yield Token("start", raw, name, forbids_translation(attributes), read_style(attributes))
        if name in RAW:
            stop = find_end_of_raw(page, position, name)
            if stop > position:
                yield Token("other", page[position:stop])
            position = stop


def find_end_of_raw(page: str, position: int, name: str) -> int:
    """Return where the end tag of an element without tags in it is; without one, where the page ends."""
    if name == "plaintext":
        return len(page)
    if name != "script":
        end = END_OF_RAW[name].search(page, position)
        return end.start() if end else len(page)
    # In a comment, a script may write a script.
    in_comment = in_script = False
    while found := IN_SCRIPT.search(page, position):
        position = found.end()
        if found[0] == "<!--":
            in_comment = True
            position -= len("--")  # they may be those of its end, as in <!-->
        elif found[0] == "-->":
            in_comment = in_script = False
        elif not found["slash"]:
            in_script = in_comment
        elif in_script:
            in_script = False
        else:
            return found.start()
    return len(page)


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


def read_style(attributes: str) -> Mapping[str, str]:
    """Return what a tag's attributes `style` and `hidden` say of the layout of text, in lower case."""
    if not MAY_HAVE_STYLE.search(attributes):
        return NO_STYLE
    style = dict[str, str]()
    for name, value in ATTRIBUTE.findall(attributes):
        if name.lower() == "hidden":
            style.setdefault("display", "none")
        elif name.lower() == "style":
            style.update(LAYOUT.findall(value.strip("\"'").lower()))
    return style


def find_ends(tokens: Sequence[Token]) -> dict[int, int]:
    """Return, for each start tag, the index of its end tag; without one, of the last token of its block."""
    ends = dict[int, int]()
    open_tags = defaultdict[str, list[int]](list)
    start_of_block = 0
    for i, token in enumerate(tokens):
        if token.name in BLOCKS:
            start_of_block = i
        if token.kind == "start" and token.name in FOREIGN and token.raw.endswith("/>"):
            ends[i] = i
        elif token.kind == "start":
            open_tags[token.name].append(i)
        elif token.kind == "end":
            indices = open_tags[token.name]
            # Only in its own block may what looks like an element of XHTML be one with content.
            while indices and tokens[indices[-1]].raw.endswith("/>") and indices[-1] < start_of_block:
                indices.pop()
            if indices:
                ends[indices.pop()] = i
    end_of_block = len(tokens) - 1
    for i in range(len(tokens) - 1, -1, -1):
        token = tokens[i]
        if token.kind == "start":
            is_xhtml = token.raw.endswith("/>") and token.name not in RAW
            ends.setdefault(i, i if is_xhtml else end_of_block)
        if token.name in BLOCKS:
            end_of_block = i - 1
    return ends


def find_end_of_noscript(tokens: Sequence[Token], start: int) -> int:
    """Return the index of the end tag of a noscript that has no text, such as one around a picture; or -1."""
    for i in range(start + 1, len(tokens)):
        if tokens[i].name == "noscript":
            return i if (tokens[start].kind, tokens[i].kind) == ("start", "end") else -1
        if tokens[i].kind == "text" and tokens[i].raw.strip():
            break
    return -1
