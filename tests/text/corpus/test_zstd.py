"""Complete, multi-frame and broken .zst files."""

from pathlib import Path

import pytest
import zstandard

from convs2s.text.corpus.zstd import open_zstd

TEXT = "".join(f"line {i} {i * i * 7919}\n" for i in range(20_000)).encode()


def test_frames_are_read_one_after_the_other(tmp_path: Path) -> None:
    """`cat a.zst b.zst` and parallel compressors make files of several frames, maybe with empty ones."""
    path = tmp_path / "a.zst"
    path.write_bytes(zstandard.compress(TEXT) + zstandard.compress(b"") + zstandard.compress(b"end"))
    with open_zstd(path) as stream:
        assert stream.read() == TEXT + b"end"


def test_lines_are_those_of_the_text(tmp_path: Path) -> None:
    """Reading by lines crosses the boundaries of decompressed chunks."""
    (tmp_path / "a.zst").write_bytes(zstandard.compress(TEXT))
    with open_zstd(tmp_path / "a.zst") as stream:
        assert list(stream) == TEXT.splitlines(keepends=True)


@pytest.mark.parametrize("kept", [3, 1000, -1])
def test_missing_end_is_an_error(tmp_path: Path, kept: int) -> None:
    """Wherever the file was cut, even if all of its text had arrived."""
    (tmp_path / "a.zst").write_bytes(zstandard.compress(TEXT)[:kept])
    with open_zstd(tmp_path / "a.zst") as stream, pytest.raises(EOFError, match="before the end of its last"):
        stream.read()


def test_other_content_is_an_error(tmp_path: Path) -> None:
    """A file that is no .zst at all."""
    (tmp_path / "a.zst").write_bytes(b"<html>Not Found</html>")
    with open_zstd(tmp_path / "a.zst") as stream, pytest.raises(zstandard.ZstdError):
        stream.read()
