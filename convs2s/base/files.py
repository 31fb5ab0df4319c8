"""Files of text, sentence pairs and JSON: read with clear errors, written whole or not at all.

Text has one sentence per line, in UTF-8, plain or compressed.
"""

import bz2
import codecs
import contextlib
import gzip
import io
import itertools
import json
import lzma
import os
import re
import reprlib
import shutil
import stat
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import IO, Any, Self, cast

from convs2s.base.messages import inflect

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

# By the bytes that a file begins with, as names may say otherwise.
DECOMPRESSORS: dict[bytes, Any] = {
    b"BZh": bz2.BZ2Decompressor,
    b"\xfd7zXZ\0": lzma.LZMADecompressor,
    b"\x28\xb5\x2f\xfd": zstd.ZstdDecompressor,
    b"\x50\x2a\x4d\x18": zstd.ZstdDecompressor,  # pzstd's first frame, which has no data
}
GZIP = b"\x1f\x8b"
BLOCK = 1 << 17  # bytes read or decompressed at once
WRITTEN_AT_ONCE = 100  # pairs, which saves the time that it takes to check them
SIDES = ("source", "target")
Pair = tuple[str, str]
"""A line of the source, and one of the target that translates it."""
CONVERSIONS = {
    codecs.BOM_UTF32_LE: "iconv -f utf-32 -t utf-8",
    codecs.BOM_UTF16_LE: "iconv -f utf-16 -t utf-8",
    codecs.BOM_UTF16_BE: "iconv -f utf-16 -t utf-8",
    b"\x1f\x8b": "zcat (it is gzip)",
    b"BZh": "bzcat (it is bzip2)",
    b"\xfd7zXZ": "xzcat (it is xz)",
    b"\x28\xb5\x2f\xfd": "zstdcat (it is zstd)",
    b"\x1f\x9d": "zcat (it is compress's .Z)",
    b"\x04\x22\x4d\x18": "lz4cat (it is lz4)",
    b"LZIP": "lzip -dc (it is lzip)",
    b"PK\x03\x04": (
        "unzip -p (it is a zip archive), or for a document such as .docx: save it as plain text, or "
        "pandoc --to plain"
    ),
    b"7z\xbc\xaf": "7z x (it is a 7z archive)",
    b"Rar!": "unrar x (it is a rar archive)",
    b"%PDF": "pdftotext (it is a PDF)",
}
"""Commands that convert a file to UTF-8, by the bytes that it begins with."""
REMOVE_BYTES = "iconv -c -f utf-8 -t utf-8, which removes them"
"""A command that leaves out bytes that are not UTF-8."""
DAMAGE_ERRORS = (EOFError, OSError, zlib.error, lzma.LZMAError, zstd.ZstdError)
"""What reading raises if compressed data is damaged, or a file cannot be read."""


def open_text(path: Path) -> IO[bytes]:
    """Open a text file to read its bytes, uncompressed if they are .gz, .bz2, .xz or .zst; pipes as they are.

    Raises:
        FileNotFoundError: if there is no such file, or it is a folder.
    """
    if not path.exists() or path.is_dir():
        fault = "is a folder" if path.is_dir() else "does not exist"
        raise FileNotFoundError(
            f"{path} {fault}. Expected a text file, plain or .gz/.bz2/.xz/.zst: check the name, in "
            "params.yaml or in the command, or run the stage that makes it."
        )
    if path.is_file():
        with path.open("rb") as stream:
            start = stream.read(8)
        for magic, decompressor in DECOMPRESSORS.items():
            if start.startswith(magic):
                return io.BufferedReader(Unpacked(path, decompressor), BLOCK)
        if start.startswith(GZIP):
            return cast(IO[bytes], gzip.open(path, "rb"))
    return path.open("rb")


class Unpacked(io.RawIOBase):
    """The bytes of a compressed file, which may consist of several members, as parallel compressors write it.

    Python's own readers of bz2, xz and zst take damage at the start of a member for the end of the file, so
    that the text after it would be missing without an error.
    """

    def __init__(self, path: Path, decompressor: Callable[[], Any]) -> None:
        self._file = path.open("rb")
        self._new_decompressor = decompressor
        self._member = decompressor()
        self._position = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._position

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Go to a position counted from the start; everything before it is decompressed again."""
        if whence != io.SEEK_SET:
            raise io.UnsupportedOperation("compressed files are read from their start")
        if offset < self._position:
            self._file.seek(0)
            self._member = self._new_decompressor()
            self._position = 0
        while self._position < offset and self.read(min(BLOCK, offset - self._position)):
            pass
        return self._position

    def readinto(self, buffer: Any) -> int:
        """Fill the buffer as far as the next block allows; return the number of bytes, 0 at the end.

        Raises:
            EOFError: if the file ends within a member.
        """
        data = b""
        while not data:
            block = b""
            if self._member.eof:
                block = self._member.unused_data.lstrip(b"\0")  # what pads a file is no member
                while not block:
                    following = self._file.read(BLOCK)
                    if not following:
                        return 0
                    block = following.lstrip(b"\0")
                self._member = self._new_decompressor()
            elif self._member.needs_input:
                block = self._file.read(BLOCK)
                if not block:
                    raise EOFError("the compressed data ends early")
            data = self._member.decompress(block, len(buffer))
        buffer[: len(data)] = data
        self._position += len(data)
        return len(data)

    def close(self) -> None:
        self._file.close()
        super().close()


def decode_lines(raw_lines: Iterable[bytes], name: object, first: int = 1) -> Iterator[str]:
    r"""Yield lines without line ends, \n or \r\n, and without the byte order mark of Windows editors.

    Raises:
        ValueError: if a line, with its number from `first` on, is not UTF-8 or compressed data is damaged.
    """
    number = first - 1
    beginning = b""  # of the text, which may show that its encoding is another
    try:
        for raw in raw_lines:
            number += 1
            beginning = beginning or raw
            yield raw.decode("utf-8-sig" if number == 1 else "utf-8").removesuffix("\n").removesuffix("\r")
    except UnicodeDecodeError as error:
        byte = error.object[error.start]
        # Latin-1 is the most likely of those that cannot be recognized.
        latin = f"iconv -f latin1 -t utf-8, or, if few bytes are damaged: {REMOVE_BYTES}"
        commands = (command for sign, command in CONVERSIONS.items() if beginning.startswith(sign))
        command = next(commands, latin)
        raise ValueError(
            f"{name}, line {number}: byte {error.start} is {byte:#04x}, which is not UTF-8. Convert it "
            f"first, for example: {command}."
        ) from error
    except DAMAGE_ERRORS as error:
        raise damage_error(name, f"line {number}", error) from error


def decode_whole(raw_lines: Iterable[bytes], name: object) -> str:
    """Return lines as one text, with their line ends and byte order mark; errors as `decode_lines`."""
    lines = list(raw_lines)
    for _ in decode_lines(lines, name):  # names the line of an error
        pass
    return b"".join(lines).decode()


def damage_error(name: object, place: str, error: Exception) -> ValueError:
    """Return the error for a file that cannot be read beyond a place, because of a DAMAGE_ERROR."""
    return ValueError(
        f"{name} cannot be read past {place}: {error}. Expected an undamaged file: is the download "
        "incomplete? Fetch it again."
    )


def read_lines(path: Path) -> Iterator[str]:
    """Yield the lines of a text file; errors as `open_text` and `decode_lines`."""
    with open_text(path) as stream:
        yield from decode_lines(stream, path)


def read_pairs(
    source: Path, target: Path, read: Callable[[Path], Iterator[str]] = read_lines
) -> Iterator[Pair]:
    """Yield line i of the source with line i of the target; a ValueError if their numbers of lines differ.

    Args:
        read: yields the lines of a file.
    """
    for pair in itertools.zip_longest(read(source), read(target)):
        if None in pair:
            source_lines, target_lines = (sum(1 for _ in read_lines(path)) for path in (source, target))
            raise ValueError(
                f"{source} has {inflect(source_lines, 'line')} but {target} has {target_lines:,}. Line i of "
                "one must translate line i of the other: is a download incomplete, or does a file end early?"
            )
        yield pair


@contextlib.contextmanager
def atomic_path(path: Path) -> Iterator[Path]:
    """Yield a temporary sibling to write a file or folder to; if all went well, move it into place.

    Whatever is at `path` stays until the new version is complete, so a crash or a full disk leaves the old
    state. A folder can replace a folder, but a file cannot. What killed processes have left of the same
    output is removed. Links are followed, and a file keeps its mode. What is not a file or folder of this
    user's is yielded itself: a pipe, a device, a file in a folder where we must not write.
    """
    if path.exists() and not is_replaceable(path):
        yield path
        return
    path = Path(os.path.realpath(path)) if path.is_symlink() else path
    temporary = name_temporary(path)
    try:
        yield temporary
        if path.is_dir() and temporary.is_dir():  # renaming replaces a file or nothing
            old = path.replace(name_temporary(path.with_name(f"{path.name}.old")))
            temporary.replace(path)
            remove(old)
        else:
            if path.is_file():
                temporary.chmod(stat.S_IMODE(path.stat().st_mode))
            temporary.replace(path)
    except BaseException as error:
        remove(temporary)
        # The error of a failed write does not name the file, which the user needs to know.
        if isinstance(error, OSError) and error.errno is not None and error.filename is None:
            reason = f"{error.strerror or error}. Nothing was left half-written"
            raise OSError(error.errno, reason, str(path)) from error
        raise


def is_replaceable(path: Path) -> bool:
    """Return whether there is a folder, or a file of this user's in a folder that this user can write."""
    is_own_file = path.is_file() and path.stat().st_uid == os.geteuid()
    return path.is_dir() or (is_own_file and os.access(Path(os.path.realpath(path)).parent, os.W_OK))


@contextlib.contextmanager
def temporary_folder(folder: Path) -> Iterator[Path]:
    """Yield a temporary folder in another; if this process is killed, the next to write there removes it."""
    temporary = name_temporary(folder / "work")
    temporary.mkdir()
    try:
        yield temporary
    finally:
        remove(temporary)


def name_temporary(path: Path) -> Path:
    """Return a name next to a path, with this process's id; remove what dead processes have left there.

    The id keeps a stage that is still ending from writing to the files of its rerun.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    for sibling in list(path.parent.iterdir()):
        leftover = re.fullmatch(rf"\.{re.escape(path.name)}\.(\d+)\.part", sibling.name)
        if leftover and not is_running(leftover[1]):
            remove(sibling)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.part")
    remove(temporary)
    return temporary


def is_running(process: str) -> bool:
    """Return whether a process is running.

    On Linux, one that has ended keeps its id until its parent has noticed; its command line is then empty.
    """
    try:
        if sys.platform == "linux":
            return bool(Path("/proc", process, "cmdline").read_bytes())
        os.kill(int(process), 0)  # sends nothing
    except OSError as error:
        return isinstance(error, PermissionError)  # of another user
    return True


def remove(path: Path) -> None:
    """Delete a file or a folder if it exists."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def require_line(text: str, place: str) -> None:
    """Raise ValueError if `read_lines` would not give a text back: it has a line feed, or ends in a return.

    Line i of a file belongs to line i of others, so one line too many would move all that follow.
    """
    if "\n" in text or text.endswith("\r"):
        raise ValueError(
            f"{place}: expected one line of text, found a line end in {reprlib.repr(text)}. Whatever made it "
            "should have put a space there; please report it, with the file that it was read from."
        )


def write_lines(path: Path, lines: Iterable[str]) -> int:
    r"""Write lines, each ending in \n, atomically; return how many. Errors as `require_line`."""
    count = 0
    with atomic_path(path) as temporary, temporary.open("w", encoding="utf-8") as stream:
        for line in lines:
            if "\n" in line or "\r" in line:
                require_line(line, f"{path}, line {count + 1:,}")
            stream.write(line + "\n")
            count += 1
    return count


def read_folder(folder: Path) -> Iterator[Pair]:
    """Yield the pairs of a folder."""
    return read_pairs(folder / "source.txt", folder / "target.txt")


def further_references(folder: Path) -> list[Path]:
    """Return the reference files other than target.txt, in order: target.2.txt, target.3.txt, ..."""
    return sorted(folder.glob("target.*.txt"), key=lambda path: int(path.name.split(".")[1]))


class PairWriter:
    """Writes pairs to a new folder; a context manager that closes the files."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self._source, self._target = ((folder / f"{side}.txt").open("w", encoding="utf-8") for side in SIDES)
        self._sentences: tuple[list[str], list[str]] = ([], [])  # not written yet

    def write(self, source: str, target: str) -> None:
        """Append a pair; errors as `require_line`."""
        if "\n" in source or "\n" in target or "\r" in source or "\r" in target:
            for side, line in zip(SIDES, (source, target), strict=True):
                require_line(line, f"{side} of a pair")
        sources, targets = self._sentences
        sources.append(source)
        targets.append(target)
        if len(sources) == WRITTEN_AT_ONCE:
            self._flush()

    def _flush(self) -> None:
        for stream, sentences in zip((self._source, self._target), self._sentences, strict=True):
            if sentences:
                stream.write("\n".join(sentences) + "\n")
                sentences.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        with self._source, self._target:
            self._flush()


def write_folder(folder: Path, pairs: Iterable[Pair]) -> None:
    """Write pairs to a folder, which appears only once complete."""
    with atomic_path(folder) as temporary, PairWriter(temporary) as writer:
        for pair in pairs:
            writer.write(*pair)


def list_files(path: Path) -> list[Path]:
    """Return a file, or the files in a folder, in order of their names."""
    return [path] if path.is_file() else sorted(file for file in path.glob("[!.]*") if file.is_file())


def read_json(path: Path) -> dict[str, Any]:
    """Read a JSON object; raise FileNotFoundError without a file, ValueError if it holds anything else.

    Of two values with one name, JSON does not say which counts, so that is an error, too.
    """
    if not path.is_file():
        raise FileNotFoundError(f"{path} does not exist. Expected a JSON file: run the stage that writes it.")
    try:
        content = json.loads(path.read_text(encoding="utf-8"), object_pairs_hook=refuse_repeated_names)
    except (ValueError, RecursionError) as error:
        raise ValueError(
            f"{path} is not JSON: {error}. Was it edited or truncated? Make or fetch it again."
        ) from error
    if not isinstance(content, dict):
        raise ValueError(
            f"{path}: expected a JSON object, found {type(content).__name__}. Make or fetch it again."
        )
    return content


def refuse_repeated_names(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object of a JSON file as a dictionary; raise ValueError if a name has two values."""
    content: dict[str, Any] = {}
    for name, value in pairs:
        if name in content:
            raise ValueError(f"expected each name once, found {reprlib.repr(name)} twice in one object")
        content[name] = value
    return content


def write_json(path: Path, content: object) -> None:
    """Write readable JSON, atomically."""
    write_lines(path, json.dumps(content, indent=2, ensure_ascii=False).split("\n"))
