"""Read the documentation: fenced blocks, inline code, headings and links of a Markdown page."""

import re
import shlex
import textwrap
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
FENCE = re.compile(r"^( *)```([\w{}-]*)[^\n]*\n(.*?)^\1```$", re.MULTILINE | re.DOTALL)
SEPARATORS = {"|", "||", "&&", ";"}
REDIRECTIONS = {"<", ">", ">>"}


def read(page: str) -> str:
    """Return the text of a page."""
    return (ROOT / page).read_text(encoding="utf-8")


def blocks(text: str, language: str) -> list[str]:
    """Return the fenced blocks of a language, without their indentation."""
    return [textwrap.dedent(body) for _, name, body in FENCE.findall(text) if name == language]


def inline_code(text: str) -> list[str]:
    """Return the code between backticks, outside of fenced blocks."""
    return re.findall(r"`([^`\n]+)`", FENCE.sub("", text))


def anchors(text: str) -> set[str]:
    """Return the anchors that GitHub gives to the headings."""
    headings = re.findall(r"^#+ (.+)$", FENCE.sub("", text), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def links(text: str) -> list[str]:
    """Return the targets of links and pictures, except web addresses."""
    return re.findall(r"\]\((?![a-z]+:)([^)\s]+)\)", FENCE.sub("", text))


def commands(shell: str) -> Iterator[list[str]]:
    """Yield the simple commands of a shell script as words, without redirections."""
    for line in shell.replace("\\\n", " ").splitlines():
        lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
        lexer.whitespace_split = True
        command: list[str] = []
        words = iter(lexer)
        for word in words:
            if word in REDIRECTIONS:
                next(words)
            elif word in SEPARATORS:
                yield command
                command = []
            else:
                command.append(word)
        if command:
            yield command
