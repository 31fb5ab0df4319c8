"""Whatever a file contains, its reader returns or raises a documented error that names the file."""

import random
import warnings
from pathlib import Path

import pytest

from tests.properties.conftest import EXAMPLES
from tests.properties.readers import READERS, Reader

# Parsers stumble over these: delimiters, signs, huge numbers, wrong encodings, null bytes, line separators.
AWKWARD = [
    b"", b"\0", b"\n", b"\r\n", b"\t", b" ", b"\xff", b"\xef\xbb\xbf", b"\xed\xa0\x80", b"-1", b"1e999",
    b"nan",    b"9" * 30, b"null", b"{}", b"[", b'"', b"<", b"&#x110000;", b"</s>",
    "\u2028".encode(), "²".encode(), b"A" * 300,
]  # fmt: skip


def damage(whole: bytes, dice: random.Random) -> bytes:
    """Return the content of a damaged file: mostly the good one with some changes, sometimes any bytes."""
    if dice.random() < 1 / 3:
        return dice.randbytes(dice.randrange(200))
    content = whole
    for _ in range(dice.randint(1, 3)):
        content = change(content, dice)
    return content


def change(content: bytes, dice: random.Random) -> bytes:
    """Return the content with an edit, a flipped bit or the rest cut off, often at an end."""
    share = dice.choice((dice.random(), dice.random(), dice.random(), 0.0, 1.0))
    start, kind = int(share * len(content)), dice.choice(("edit", "flip", "cut"))
    if kind == "edit":
        new = dice.choice((dice.choice(AWKWARD), dice.randbytes(dice.randrange(20))))
        return content[:start] + new + content[start + dice.randrange(20) :]
    if kind == "flip" and content:
        start = min(start, len(content) - 1)
        return content[:start] + bytes([content[start] ^ 1 << dice.randrange(8)]) + content[start + 1 :]
    return content[:start]


@pytest.mark.parametrize("reader", READERS, ids=lambda reader: reader.name)
def test_a_damaged_file_is_read_or_named(reader: Reader, tmp_path: Path) -> None:
    """Damage must not cause any other exception, a crash in a library, or an endless loop."""
    path = tmp_path / "folder" / reader.name
    path.parent.mkdir()
    reader.prepare(path)
    reader.read(path)  # the good file
    whole = path.read_bytes()
    for seed in range(EXAMPLES):
        content = damage(whole, random.Random(seed))
        path.write_bytes(content)
        try:
            check(reader, path)
        except BaseException as error:
            error.add_note(f"seed {seed}: {content!r}")
            raise


def check(reader: Reader, path: Path) -> None:
    """Read a file; any error must be one meant for users, and must name the file."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            reader.read(path)
    except (ValueError, OSError) as error:
        assert path.name.split(".")[0] in str(error), f"no file in the message: {error}"
