"""Zstandard files as streams that detect truncation, which zstandard's own reader takes for the end."""

import io
from pathlib import Path
from typing import IO

import zstandard

CHUNK = 1 << 16  # compressed bytes read at once


class ZstdStream(io.RawIOBase):
    """The content of a .zst file, which may consist of several frames one after the other."""

    def __init__(self, path: Path) -> None:
        """Open the file."""
        self._file = path.open("rb")
        self._frame = zstandard.ZstdDecompressor().decompressobj()
        self._begun = False  # whether the current frame has had any bytes
        self._ready = b""

    def readable(self) -> bool:
        """Return True: io asks every raw stream."""
        return True

    def readinto(self, buffer: "bytearray | memoryview") -> int:  # type: ignore[override]
        """Fill the buffer from at most one chunk; return the number of bytes, 0 at the end.

        Raises:
            EOFError: if the file ends within a frame.
            zstandard.ZstdError: if it is damaged.
        """
        while not self._ready:
            chunk = self._file.read(CHUNK)
            if not chunk:
                if self._begun:
                    raise EOFError("compressed file ended before the end of its last frame")
                return 0
            self._ready = self._decompress(chunk)
        part, self._ready = self._ready[: len(buffer)], self._ready[len(buffer) :]
        buffer[: len(part)] = part
        return len(part)

    def _decompress(self, chunk: bytes) -> bytes:
        parts = []
        while chunk:
            self._begun = True
            parts.append(self._frame.decompress(chunk))
            chunk = b""
            if self._frame.eof:
                chunk = self._frame.unused_data
                self._frame, self._begun = zstandard.ZstdDecompressor().decompressobj(), False
        return b"".join(parts)

    def close(self) -> None:
        """Close the file too."""
        self._file.close()
        super().close()


def open_zstd(path: Path, mode: str = "rb") -> IO[bytes]:
    """Open a .zst file for reading, like `gzip.open` for a .gz file."""
    assert mode == "rb", "nothing writes .zst files"
    return io.BufferedReader(ZstdStream(path), buffer_size=1 << 17)
