"""Lines in, from files in large chunks, from pipes and terminals as they arrive; the output and its bar."""

import collections
import contextlib
import itertools
import os
import queue
import stat
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from convs2s.base.files import atomic_path
from convs2s.base.messages import conversion

CHUNK_BATCHES = 32
"""Batches read ahead: enough to group sentences of similar length, few enough to hold in memory."""
QUIET_SECONDS = 0.005
"""If no further line arrives for this long, the lines that have arrived are translated."""


def chunks(path: Path | None, stream: IO[bytes], batch_sentences: int) -> Iterator[list[str]]:
    """Yield the lines of the input, standard input if the path is None, in chunks to translate together.

    Raises:
        ValueError: if a line is not UTF-8; of a file, no line has been yielded then.
    """
    if path is None and sys.stdin.isatty():
        return ([line] for line in read_typed_lines())
    name, most = str(path or "standard input"), CHUNK_BATCHES * batch_sentences
    if is_file(stream):
        position = stream.tell()
        collections.deque(decode_lines(stream, name), maxlen=0)  # a fault at the end is an error now
        stream.seek(position)
        lines = decode_lines(stream, name)
        return iter(lambda: list(itertools.islice(lines, most)), [])
    # The thread needs its own stream: Python could not close this one at exit while a thread waits on it.
    own = os.fdopen(os.dup(stream.fileno()), "rb")
    return chunks_as_they_arrive(decode_lines(own, name), batch_sentences, most)


def chunks_as_they_arrive(lines: Iterator[str], fewest: int, most: int) -> Iterator[list[str]]:
    """Yield lists of lines as they arrive; a list ends when no more lines come for a few milliseconds.

    A list has up to `fewest` lines, so that output starts soon. As long as lists fill up, each may be twice
    as long as the last, up to `most`, because long lists sort better into batches of similar length.
    """
    waiting: queue.Queue[str | BaseException] = queue.Queue(most)
    threading.Thread(target=read_ahead, args=(lines, waiting), name="input", daemon=True).start()
    limit = fewest
    while True:
        found = [waiting.get()]
        with contextlib.suppress(queue.Empty):
            while len(found) < limit and isinstance(found[-1], str):
                found.append(waiting.get(timeout=QUIET_SECONDS))
        if chunk := [line for line in found if isinstance(line, str)]:
            yield chunk
        if isinstance(found[-1], EOFError):
            return
        if isinstance(found[-1], BaseException):
            raise found[-1]
        limit = min(2 * limit, most) if len(found) == limit else fewest


def read_ahead(lines: Iterator[str], waiting: "queue.Queue[str | BaseException]") -> None:
    """Put lines into a queue, followed by the error that ended them: an EOFError if all is well."""
    try:
        for line in lines:
            waiting.put(line)
        waiting.put(EOFError())
    except Exception as error:
        waiting.put(error)


def read_typed_lines() -> Iterator[str]:
    """Yield typed lines, with a hint and a prompt, and with line editing if the output is a terminal, too."""
    print("Type a sentence and press Enter. Ctrl-D ends.", file=sys.stderr)
    with contextlib.suppress(ImportError):
        import readline  # noqa: F401, PLC0415  # makes input() edit lines
    while True:
        try:
            # The prompt must not become part of the output.
            with contextlib.redirect_stdout(sys.stdout if sys.stdout.isatty() else sys.stderr):
                line = input("> ")
        except EOFError:
            print(file=sys.stderr)  # so that the shell's prompt starts on a new line
            return
        yield line


def is_file(stream: IO[bytes]) -> bool:
    """Return whether all of a stream is available now: a file, or something in memory."""
    try:
        return stat.S_ISREG(os.fstat(stream.fileno()).st_mode)
    except OSError:
        return True


def count_lines_left(stream: IO[bytes]) -> int:
    """Return the number of lines left in a file, without moving its position."""
    position = stream.tell()
    count = sum(1 for _ in stream)
    stream.seek(position)
    return count


def decode_lines(stream: IO[bytes], name: str) -> Iterator[str]:
    r"""Yield lines without the line end, \n or \r\n, and without the byte order mark of Windows editors.

    Raises:
        ValueError: if a line is not UTF-8, with its number.
    """
    for number, raw in enumerate(stream, start=1):
        try:
            yield raw.decode("utf-8-sig" if number == 1 else "utf-8").removesuffix("\n").removesuffix("\r")
        except UnicodeDecodeError as error:
            raise ValueError(
                f"{name}, line {number}: byte {error.start} is {raw[error.start]:#04x}, which is not UTF-8. "
                f"Convert the text first, for example: {conversion(raw if number == 1 else b'')}."
            ) from error


@contextmanager
def open_input(path: Path | None) -> Iterator[IO[bytes]]:
    """Open a file, or take standard input; refuse a folder and a name without a file."""
    if path is None:
        yield sys.stdin.buffer
        return
    check_file("--input", path, ", or leave --input out and pass the text on standard input")
    with path.open("rb") as stream:
        yield stream


class SecondFile:
    """A file whose line i belongs to line i of the input: a translation, or the beginning of one.

    Raises:
        FileNotFoundError: if there is no such file, or it is a folder.
    """

    def __init__(self, option: str, path: Path) -> None:
        check_file(option, path)
        self._name, self._path = f"{option} {path}", path
        self._lines = self._read()

    def _read(self) -> Iterator[str]:
        with self._path.open("rb") as stream:
            yield from decode_lines(stream, self._name)

    def check_length(self, lines: int) -> None:
        """Raise ValueError unless the file has as many lines as the input."""
        if (count := sum(1 for _ in self._read())) != lines:
            raise ValueError(self._wrong("fewer" if count < lines else "more"))

    def _wrong(self, found: str) -> str:
        return f"{self._name}: expected a line for each line of the input, found {found}."

    def take(self, count: int) -> list[str]:
        """Return the next lines; raise ValueError if there are fewer."""
        found = list(itertools.islice(self._lines, count))
        if len(found) < count:
            raise ValueError(self._wrong("fewer"))
        return found

    def check_end(self) -> None:
        """Raise ValueError if the file has more lines than the input."""
        if next(self._lines, None) is not None:
            raise ValueError(self._wrong("more"))


def check_file(option: str, path: Path, otherwise: str = "") -> None:
    """Raise FileNotFoundError if there is no such file, or it is a folder."""
    if path.is_dir() or not path.exists():
        found = "is a folder" if path.is_dir() else "does not exist"
        raise FileNotFoundError(
            f"{option} {path} {found}. Expected UTF-8 text, one sentence per line: check the name{otherwise}."
        )


@contextmanager
def open_output(path: Path | None, option: str = "--output") -> Iterator[IO[bytes]]:
    """Open a file that appears only once complete, or take standard output; refuse a folder."""
    if path is None:
        yield sys.stdout.buffer
        return
    if path.is_dir():
        raise IsADirectoryError(f"{option} {path} is a folder. Expected a file, such as {path / 'out.txt'}.")
    with atomic_path(path) as temporary, temporary.open("wb") as stream:
        yield stream


@contextmanager
def show_progress(source: IO[bytes], output: Path | None) -> Iterator[Callable[[int], object]]:
    """Show a bar on standard error while a file is translated, if that is a terminal and the output is not.

    Yields:
        A function to call with the number of sentences just finished.
    """
    if not (sys.stderr.isatty() and is_file(source)) or (output is None and sys.stdout.isatty()):
        yield lambda _: None
        return
    from tqdm import tqdm  # noqa: PLC0415  # takes time, and is rarely needed

    # Long sentences come first in each chunk, so recent speed misleads; smoothing=0 shows the average.
    with tqdm(
        total=count_lines_left(source), desc="translate", unit=" sentences", smoothing=0, dynamic_ncols=True
    ) as bar:
        yield bar.update
