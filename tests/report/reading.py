"""Reads a page like a browser: its elements, and the text of tables and sections."""

from html.parser import HTMLParser

VOID = {"meta", "br", "img", "link"}


class Page(HTMLParser):
    """A parsed page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str]]] = []  # names and attributes
        self.tables: dict[str, list[list[list[str]]]] = {}  # of each section, as rows of cells
        self.texts: dict[str, str] = {}  # of each section
        self.marked: list[str] = []  # the text of every `mark`
        self.open: list[str] = []
        self.feed(text)
        self.close()
        assert self.open == [], "elements that nothing closes"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = {name: value or "" for name, value in attrs}
        self.elements.append((tag, attributes))
        if tag not in VOID:
            self.open.append(tag)
        if tag == "section":
            self.section = attributes["id"]
            self.tables[self.section], self.texts[self.section] = [], ""
        elif tag == "table":
            self.tables[self.section].append([])
        elif tag == "tr":
            self.tables[self.section][-1].append([])
        elif tag in {"td", "th"}:
            self.tables[self.section][-1][-1].append("")
        elif tag == "mark":
            self.marked.append("")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.texts:
            self.texts[self.section] += data
        if {"td", "th"} & set(self.open):
            self.tables[self.section][-1][-1][-1] += data
        if "mark" in self.open:
            self.marked[-1] += data
