"""The damage that a disk, a network or an editor does to a file."""

import random
from typing import NamedTuple

# Parsers stumble over these: delimiters, signs, huge numbers, wrong encodings, null bytes, line separators.
AWKWARD = [
    b"", b"\0", b"\n", b"\r\n", b"\t", b" ", b"\xff", b"\xef\xbb\xbf", b"\xed\xa0\x80", b"-1", b"1e999",
    b"nan",    b"9" * 30, b"null", b"{}", b"[", b'"', b"<", b"&#x110000;", b"</s>",
    "\u2028".encode(), "²".encode(), b"A" * 300,
]  # fmt: skip


class Edit(NamedTuple):
    """A replacement: its position as a share of the length, the number of bytes removed, and new bytes."""

    where: float
    length: int
    content: bytes

    def apply(self, content: bytes) -> bytes:
        start = int(self.where * len(content))
        return content[:start] + self.content + content[start + self.length :]


class Flip(NamedTuple):
    """A flipped bit: the position of its byte as a share of the length, and its number within the byte."""

    where: float
    bit: int

    def apply(self, content: bytes) -> bytes:
        if not content:
            return content
        at = min(int(self.where * len(content)), len(content) - 1)
        return content[:at] + bytes([content[at] ^ 1 << self.bit]) + content[at + 1 :]


class Cut(NamedTuple):
    """A truncation: its position as a share of the length."""

    where: float

    def apply(self, content: bytes) -> bytes:
        return content[: int(self.where * len(content))]


def damaged(whole: bytes, dice: random.Random) -> bytes:
    """Return the content of a damaged file: mostly the good one with some changes, sometimes any bytes."""
    if dice.random() < 1 / 3:
        return dice.randbytes(dice.randrange(200))
    content = whole
    for _ in range(dice.randint(1, 3)):
        content = draw_change(dice).apply(content)
    return content


def draw_change(dice: random.Random) -> Edit | Flip | Cut:
    """Return a change at a random position, often at the very beginning or end."""
    where = dice.choice((dice.random(), dice.random(), dice.random(), 0.0, 1.0))
    kind = dice.randrange(3)
    if kind == 0:
        content = dice.choice((dice.choice(AWKWARD), dice.randbytes(dice.randrange(20))))
        return Edit(where, dice.randrange(20), content)
    return Flip(where, dice.randrange(8)) if kind == 1 else Cut(where)
