"""The damage that a disk, a network or an editor does to a file."""

import random

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
