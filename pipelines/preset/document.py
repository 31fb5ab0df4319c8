"""The text of a YAML file shaped like params.yaml: for each key the lines that set it, with comments."""

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from convs2s.config.load import parse_yaml, read_text


@dataclass(frozen=True)
class Block:
    """The lines of one key."""

    above: list[str]
    """Blank lines and comments directly above the key."""
    lines: list[str]
    """The key's own line and the lines nested below it; for a section, only its own line."""


@dataclass(frozen=True)
class Document:
    """A file, divided into the blocks of its keys."""

    name: str
    header: list[str]
    """Comment lines above the first section."""
    blocks: dict[str, Block]
    """By section ("train") and by dotted name ("train.dropout"), in the order of the file."""


def read_document(path: Path, name: str) -> Document:
    """Read a file of sections with one key per line; a file with only comments has no blocks.

    Args:
        name: of the file, for error messages.

    Raises:
        ValueError: if it is not YAML, a section has no keys, or two keys share a line.
    """
    return parse_document(read_text(path), name)


@functools.lru_cache(maxsize=64)
def parse_document(text: str, name: str) -> Document:
    """Parse the text of such a file; recent results are cached."""
    parse_yaml(text, name)  # rejects files that would exhaust memory or take forever
    try:
        # Only the round-trip loader records the line of each key.
        content = YAML().load(text) or {}
    except YAMLError as error:
        raise ValueError(f"{name} is not valid YAML: {error}") from error
    return divide(name, text.split("\n"), first_lines(name, content))


def first_lines(name: str, content: Any) -> dict[str, int]:
    """Return the line in which each section and key begins, counted from 0.

    Raises:
        ValueError: as `read_document`.
    """
    if not isinstance(content, Mapping):
        raise ValueError(f"{name}: found {content!r}, wanted sections such as `train:` with keys below them.")
    starts: dict[str, int] = {}
    for section, keys in content.items():
        if not isinstance(keys, Mapping):
            raise ValueError(f"{name}: {section}: found {keys!r}, wanted the keys of this section.")
        lines: Any = content
        starts[section] = lines.lc.key(section)[0]
        lines = keys
        for key in keys:
            starts[f"{section}.{key}"] = lines.lc.key(key)[0]
    for (one, line), (other, next_line) in pairwise(starts.items()):
        if line == next_line:
            raise ValueError(f"{name}: {one} and {other} share line {line + 1}, wanted one key per line.")
    return starts


def divide(name: str, lines: list[str], starts: Mapping[str, int]) -> Document:
    """Return the blocks of the keys that begin at these lines."""
    blocks: dict[str, Block] = {}
    header = above = lines[: min(starts.values(), default=len(lines))]
    for (key, start), (_, end) in pairwise([*starts.items(), ("", len(lines))]):
        stop = end
        while is_blank_or_comment(lines[stop - 1]):
            stop -= 1
        blocks[key] = Block([] if above is header else above, lines[start:stop])
        above = lines[stop:end]
    return Document(name, [line for line in header if line.startswith("#")], blocks)


def is_blank_or_comment(line: str) -> bool:
    """Return whether a line sets no value."""
    return line.strip() == "" or line.lstrip().startswith("#")
