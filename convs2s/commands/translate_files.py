"""Lines in, from files in large chunks, from pipes and terminals as they arrive; the output and its bar."""

import io
import itertools
import os
import select
import stat
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, redirect_stdout, suppress
from pathlib import Path
from typing import IO

from convs2s.base.files import atomic_path, decode_lines, open_text
from convs2s.base.messages import is_terminal

QUIET_SECONDS = 0.005
"""If nothing further arrives for this long, the lines that have arrived are translated."""
PIPE_BYTES = 1 << 16
STANDARD = None, Path("-")
"""Paths that mean standard input or output."""


def chunks(stream: IO[bytes], name: str, most: int) -> Iterator[list[str]]:
    """Yield lines in chunks to translate together: of a terminal one, of a pipe those that have arrived.

    A chunk has `most` lines, of a pipe a few more. The stream's name is for errors.
    """
    if is_terminal(sys.stdin) and stream is sys.stdin.buffer:
        yield from ([line] for line in read_typed_lines())
    elif is_file(stream):
        lines = decode_lines(stream, name)
        while chunk := list(itertools.islice(lines, most)):
            yield chunk
    else:
        number = 1
        for arrived in lines_as_they_arrive(stream.fileno(), most):
            yield list(decode_lines(arrived, name, number))
            number += len(arrived)


def lines_as_they_arrive(pipe: int, most: int) -> Iterator[list[bytes]]:
    """Yield the lines of a pipe as soon as no more come for a few milliseconds, or `most` have arrived."""
    reader = LineReader(pipe)
    while not reader.has_ended:
        reader.read_more()
        while not reader.has_ended and reader.line_ends < most and reader.can_read_soon():
            reader.read_more()
        if lines := reader.take_lines():
            yield lines


class LineReader:
    """Reads a pipe in blocks, which end anywhere in a line, and gives back whole lines."""

    def __init__(self, pipe: int) -> None:
        self.pipe = pipe
        self.blocks: list[bytes] = []  # read, but not yet taken
        self.line_ends = 0  # in these blocks
        self.has_ended = False

    def read_more(self) -> None:
        """Wait for the next block, or for the end of the pipe."""
        block = os.read(self.pipe, PIPE_BYTES)
        self.blocks.append(block)
        self.line_ends += block.count(b"\n")
        self.has_ended = not block

    def can_read_soon(self) -> bool:
        """Return whether anything, or the end, arrives within QUIET_SECONDS."""
        readable, _, _ = select.select([self.pipe], [], [], QUIET_SECONDS)
        return bool(readable)

    def take_lines(self) -> list[bytes]:
        """Return the whole lines read; the beginning of another is kept, unless the pipe has ended."""
        text = b"".join(self.blocks)
        end = len(text) if self.has_ended else text.rfind(b"\n") + 1
        self.blocks = [text[end:]]
        self.line_ends = 0
        return io.BytesIO(text[:end]).readlines()


def read_typed_lines() -> Iterator[str]:
    """Yield typed lines, with a hint and a prompt, and line editing if the output is a terminal, too."""
    print("Type a sentence and press Enter. Ctrl-D ends.", file=sys.stderr)
    with suppress(ImportError):
        import readline  # noqa: F401, PLC0415  # makes input() edit lines
    with suppress(EOFError):
        while True:
            # The prompt must not become part of the output.
            with redirect_stdout(sys.stdout if is_terminal(sys.stdout) else sys.stderr):
                line = input("> ")
            yield line
    print(file=sys.stderr)  # for the shell's prompt


def is_file(stream: IO[bytes]) -> bool:
    """Return whether all of a stream is available now: a file, or something in memory."""
    try:
        return stat.S_ISREG(os.fstat(stream.fileno()).st_mode)
    except OSError:
        return True


def count_lines(stream: IO[bytes], name: str) -> int | None:
    """Return the number of lines left in a file, all of them UTF-8; None for a pipe."""
    if not is_file(stream):
        return None
    position = stream.tell()
    count = sum(1 for _ in decode_lines(stream, name))
    stream.seek(position)
    return count


def open_input(path: Path | None) -> AbstractContextManager[IO[bytes]]:
    """Open a text file, plain or compressed, or take standard input, which is also "-"."""
    if path is not None and path not in STANDARD:
        return open_text(path)
    if sys.stdin is None:
        raise OSError("standard input is closed. Expected text there, or the name of a file.")
    return nullcontext(sys.stdin.buffer)


@contextmanager
def open_output(path: Path | None) -> Iterator[IO[bytes]]:
    """Open a file that appears only once complete, or take standard output, which is also "-"."""
    if path is None or path in STANDARD:
        if sys.stdout is None:
            raise OSError("standard output is closed. Expected one, or the name of a file.")
        yield sys.stdout.buffer
        return
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder. Expected a file, such as {path / 'out.txt'}.")
    with atomic_path(path) as temporary, temporary.open("wb") as stream:
        yield stream
