"""Whatever a file contains, its reader returns or raises a documented error that names the file."""

import importlib
import inspect
import pkgutil
import random
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from types import CodeType, FrameType

import pytest

import convs2s
from tests.properties.conftest import EXAMPLES
from tests.properties.readers import READERS, Reader

# Parsers stumble over these: delimiters, signs, huge numbers, wrong encodings, null bytes, line separators.
AWKWARD = [
    b"", b"\0", b"\n", b"\r\n", b"\t", b" ", b"\xff", b"\xef\xbb\xbf", b"\xed\xa0\x80", b"-1", b"1e999",
    b"nan",    b"9" * 30, b"null", b"{}", b"[", b'"', b"<", b"&#x110000;", b"</s>",
    "\u2028".encode(), "²".encode(), b"A" * 300,
]  # fmt: skip


def damage(content: bytes, dice: random.Random) -> bytes:
    """Return the content with something else in place of a part of it, or of all that follows."""
    start = dice.choice((0, dice.randrange(len(content)), dice.randrange(len(content)), len(content)))
    new = dice.choice((b"", dice.choice(AWKWARD), dice.randbytes(dice.randrange(20))))
    return content[:start] + new + content[start + dice.choice((0, 1, 20, len(content))) :]


@pytest.mark.parametrize("reader", READERS, ids=lambda reader: reader.name)
def test_a_damaged_file_is_read_or_named(reader: Reader, tmp_path: Path) -> None:
    """Damage causes no exception but one meant for users, no crash in a library, and no endless loop."""
    path = tmp_path / "folder" / reader.name
    path.parent.mkdir()
    reader.prepare(path)
    reader.read(path)  # the good file
    whole = path.read_bytes()
    for seed in range(EXAMPLES):
        content = damage(whole, random.Random(seed))
        path.write_bytes(content)
        try:
            with warnings.catch_warnings(action="ignore"):
                reader.read(path)
        except (ValueError, OSError) as error:
            assert path.name.split(".")[0] in str(error), f"seed {seed} with {content!r}: {error}"


OF_STRANGERS = ("config", "fairseq", "ids", "model", "package", "text")
"""Packages that read params.yaml, corpora, archives, model folders and checkpoints of fairseq."""
ELSEWHERE = {
    "load_start": "load_model, then shapes: tests/model",
    "load_tokenizers": "read_settings and read_counts",
    "read_attention_of": "load, for a sentence",
    "read_facts": "tests/package",
    "read_pieces": "tests/text/vocabulary",
    "read_segment_pairs": "read_segments, of both sides",
    "read_text_pairs": "read_lines, of both sides",
    "read_words": "read_lines, of a stage's own files",
}
"""Functions that READERS has no row for, and what tests their files."""


def functions() -> Iterator[tuple[str, CodeType]]:
    """Yield each function that reads the file or folder that is its first argument."""
    for found in pkgutil.walk_packages(convs2s.__path__, "convs2s."):
        if found.name.split(".")[1] in OF_STRANGERS:
            module = importlib.import_module(found.name)
            for name, function in inspect.getmembers(module, inspect.isfunction):
                kinds = [one.annotation for one in inspect.signature(function).parameters.values()]
                is_reader = name.partition("_")[0] in {"read", "load", "unpack"} and kinds[:1] == [Path]
                if is_reader and function.__module__ == found.name:
                    yield name, inspect.unwrap(function).__code__


def test_every_reader_of_strangers_files_is_tried(tmp_path: Path) -> None:
    """SECURITY.md says so: a new one needs a row in READERS, or another test of damaged files."""
    called = set[CodeType]()

    def note(frame: FrameType, event: str, _: object) -> None:
        called.add(frame.f_code)

    for number, reader in enumerate(READERS):
        path = tmp_path / str(number) / reader.name
        path.parent.mkdir()
        reader.prepare(path)
        sys.setprofile(note)
        try:
            reader.read(path)
        finally:
            sys.setprofile(None)
    names = {name for name, code in functions() if code not in called}
    assert names <= ELSEWHERE.keys(), names - ELSEWHERE.keys()
