"""The messages in source code: string literals, with a gap for each value that is filled in."""

import ast
import re
from collections.abc import Iterable
from pathlib import Path

GAP = "\0"


def literals(files: Iterable[Path]) -> list[str]:
    """Return the string literals of Python files; adjacent ones are joined, as Python does."""
    found = []
    for file in files:
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.JoinedStr):
                parts = [part.value if isinstance(part, ast.Constant) else GAP for part in node.values]
                found.append("".join(map(str, parts)))
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                found.append(re.sub(r"%[sdr]", GAP, node.value))
    return found


def occurs(message: str, among: list[str]) -> bool:
    """Return whether a literal contains this message, where ... matches any text."""
    parts = message.split("...")
    return any(in_order(parts, literal) for literal in among)


def in_order(parts: list[str], text: str) -> bool:
    """Return whether a text contains all parts in this order."""
    end = 0
    for part in parts:
        begin = text.find(part, end)
        if begin < 0:
            return False
        end = begin + len(part)
    return True
