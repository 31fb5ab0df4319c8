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
