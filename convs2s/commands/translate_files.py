"""Lines in, from files in large chunks, from pipes and terminals as they arrive; the output and its bar."""

import contextlib
import io
import itertools
import os
import select
import stat
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from convs2s.base.files import atomic_path
from convs2s.base.messages import conversion

QUIET_SECONDS = 0.005
"""If nothing further arrives for this long, the lines that have arrived are translated."""
PIPE_BYTES = 1 << 16


def chunks(stream: IO[bytes], name: str, most: int) -> Iterator[list[str]]:
    """Yield lines in chunks to translate together: of a terminal one, of a pipe those that have arrived.

    Args:
        stream: a file, a pipe or a terminal.
        name: of the stream, for errors.
        most: lines per chunk; of a pipe, a few more.

    Raises:
        ValueError: if a line is not UTF-8.
    """
    if sys.stdin.isatty() and stream is sys.stdin.buffer:
        yield from ([line] for line in read_typed_lines())
    elif is_file(stream):
        lines = decode_lines(stream, name)
        yield from iter(lambda: list(itertools.islice(lines, most)), [])
    else:
        number = 1
        for arrived in lines_as_they_arrive(stream.fileno(), most):
            yield list(decode_lines(arrived, name, number))
            number += len(arrived)


def lines_as_they_arrive(pipe: int, most: int) -> Iterator[list[bytes]]:
    """Yield the lines of a pipe as soon as no more come for a few milliseconds, or `most` have arrived."""
    beginning, block = b"", None  # of a line
    while block != b"":
        arrived = [beginning, block := os.read(pipe, PIPE_BYTES)]
        lines = block.count(b"\n")
        while block and lines < most and select.select([pipe], [], [], QUIET_SECONDS)[0]:
            arrived.append(block := os.read(pipe, PIPE_BYTES))
            lines += block.count(b"\n")
        text, end, beginning = b"".join(arrived).rpartition(b"\n")
        if text_lines := io.BytesIO(text + end + (b"" if block else beginning)).readlines():
            yield text_lines


def read_typed_lines() -> Iterator[str]:
    """Yield typed lines, with a hint and a prompt, and with line editing if the output is a terminal, too."""
    print("Type a sentence and press Enter. Ctrl-D ends.", file=sys.stderr)
    with contextlib.suppress(ImportError):
        import readline  # noqa: F401, PLC0415  # makes input() edit lines
    with contextlib.suppress(EOFError):
        while True:
            # The prompt must not become part of the output.
            with contextlib.redirect_stdout(sys.stdout if sys.stdout.isatty() else sys.stderr):
                line = input("> ")
            yield line
    print(file=sys.stderr)  # so that the shell's prompt starts on a new line


def is_file(stream: IO[bytes]) -> bool:
    """Return whether all of a stream is available now: a file, or something in memory."""
    try:
        return stat.S_ISREG(os.fstat(stream.fileno()).st_mode)
    except OSError:
        return True


def count_lines(stream: IO[bytes], name: str) -> int | None:
    """Return the number of lines left in a file; None for a pipe.

    Raises:
        ValueError: if a line is not UTF-8, so that nothing is translated before.
    """
    if not is_file(stream):
        return None
    position = stream.tell()
    count = sum(1 for _ in decode_lines(stream, name))
    stream.seek(position)
    return count


def decode_lines(raw_lines: Iterable[bytes], name: str, first: int = 1) -> Iterator[str]:
    r"""Yield lines without the line end, \n or \r\n, and without the byte order mark of Windows editors.

    Raises:
        ValueError: if a line is not UTF-8, with its number, counted from `first`.
    """
    for number, raw in enumerate(raw_lines, start=first):
        try:
            yield raw.decode("utf-8-sig" if number == 1 else "utf-8").removesuffix("\n").removesuffix("\r")
        except UnicodeDecodeError as error:
            raise ValueError(
                f"{name}, line {number}: byte {error.start} is {raw[error.start]:#04x}, which is not UTF-8. "
                f"Convert the text first, for example: {conversion(raw if number == 1 else b'')}."
            ) from error


@contextmanager
def open_text(option: str, path: Path | None) -> Iterator[IO[bytes]]:
    """Open a file, or take standard input; refuse a folder and a name without a file."""
    if path is None:
        yield sys.stdin.buffer
        return
    if not path.exists() or path.is_dir():
        fault = "is a folder" if path.is_dir() else "does not exist"
        raise FileNotFoundError(
            f"{option} {path} {fault}. Expected UTF-8 text, one sentence per line: check the name."
        )
    with path.open("rb") as stream:
        yield stream


@contextmanager
def open_output(option: str, path: Path | None) -> Iterator[IO[bytes]]:
    """Open a file that appears only once complete, or take standard output; refuse a folder."""
    if path is None:
        yield sys.stdout.buffer
        return
    if path.is_dir():
        raise IsADirectoryError(f"{option} {path} is a folder. Expected a file, such as {path / 'out.txt'}.")
    with atomic_path(path) as temporary, temporary.open("wb") as stream:
        yield stream
