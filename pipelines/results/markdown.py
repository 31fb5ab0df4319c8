"""Pieces of a page in Markdown."""

from collections.abc import Sequence


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Return a table's lines; a bar within a cell would end it, so it is escaped."""
    lines = [list(header), ["---"] * len(header), *rows]
    return ["| " + " | ".join(escaped(cell) for cell in line) + " |" for line in lines]


def escaped(cell: str) -> str:
    """Return text for a cell."""
    return cell.replace("|", r"\|").replace("\n", " ")


def code(text: str) -> str:
    """Return text as code; nothing for nothing."""
    return f"`{text}`" if text else ""


class Marks:
    """Short marks for long texts that many rows share: S1, S2, ... in the order of their first use."""

    def __init__(self, letter: str) -> None:
        self.letter = letter
        self.texts: dict[str, str] = {}

    def mark(self, text: str) -> str:
        """Return the mark of a text."""
        return self.texts.setdefault(text, f"{self.letter}{len(self.texts) + 1}")

    def lines(self) -> list[str]:
        """Return a line per mark, with its text."""
        return [f"- {mark}: `{text}`" for text, mark in self.texts.items()]
