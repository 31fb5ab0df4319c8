"""What people report of programs that do this job: each row is a case of a kind of fault."""

import bz2
import contextlib
import gzip
import io
import lzma
import os
import stat
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from convs2s.base.files import read_lines, zstd
from convs2s.commands.translate_files import count_lines, open_input, open_output
from tests.package.small_package import write_small_package

ROOT = Path(__file__).parent.parent


def write(path: Path) -> None:
    """Write as every command does."""
    with open_output(path) as stream:
        stream.write(b"new\n")


def to_pipe(path: Path) -> object:
    os.mkfifo(path)
    texts = list[bytes]()
    reader = threading.Thread(target=lambda: texts.append(path.read_bytes()))
    reader.start()
    write(path)
    reader.join(10)
    return stat.S_ISFIFO(path.stat().st_mode) and texts


def to_substitution(path: Path) -> object:
    reading, writing = os.pipe()
    write(Path(f"/dev/fd/{writing}"))
    os.close(writing)
    with os.fdopen(reading, "rb") as stream:
        return [stream.read()]


def to_link(path: Path) -> object:
    real = path.with_name("real")
    real.write_bytes(b"old")
    path.symlink_to(real.name)
    write(path)
    return path.is_symlink() and [real.read_bytes()]


def to_dangling_link(path: Path) -> object:
    path.symlink_to("real")
    write(path)
    return path.is_symlink() and [path.with_name("real").read_bytes()]


def to_mode(path: Path) -> object:
    path.touch()
    path.chmod(0o640)
    write(path)
    return stat.S_IMODE(path.stat().st_mode) == 0o640 and [path.read_bytes()]


def to_terminal(path: Path) -> object:
    ours, theirs = os.openpty()
    write(Path(os.ttyname(theirs)))
    return [os.read(ours, 99).replace(b"\r", b"")]


@pytest.mark.parametrize("point", [to_pipe, to_substitution, to_link, to_dangling_link, to_mode, to_terminal])
def test_an_output_goes_where_the_user_points(point: Callable[[Path], object], tmp_path: Path) -> None:
    """Only a regular file is replaced; links are followed, modes kept, all else is written through."""
    assert point(tmp_path / "out") == [b"new\n"]


@pytest.mark.parametrize("option", [open_input, open_output])
def test_a_dash_is_the_standard_stream(
    option: Callable[..., contextlib.AbstractContextManager[io.BytesIO]], capfdbinary: object
) -> None:
    """`-` means standard input or output in most programs; a file of that name would surprise users."""
    with option(Path("-")) as stream:
        assert stream in (sys.stdin.buffer, sys.stdout.buffer)


@pytest.mark.parametrize(
    ("name", "compress"),
    [
        ("x.txt.gz", gzip.compress),
        ("x.bz2", bz2.compress),
        ("x", lzma.compress),  # by content, whatever the name
        ("x.txt", zstd.compress),
        ("x.gz", bytes),  # a browser has unpacked it
    ],
)
def test_compressed_text_is_read(name: str, compress: Callable[[bytes], bytes], tmp_path: Path) -> None:
    """Corpora come compressed, by parallel compressors in several parts; every reader of text takes them."""
    (tmp_path / name).write_bytes(b"".join(map(compress, (b"eins\n", b"", "zwölf\n".encode()))))
    assert list(read_lines(tmp_path / name)) == ["eins", "zwölf"]
    with open_input(tmp_path / name) as stream:
        assert count_lines(stream, name) == 2
        assert stream.read().decode() == "eins\nzwölf\n"


@pytest.mark.parametrize(
    ("start", "advice"),
    [
        (b"\x1f\x9d\x90", "compress's .Z"),
        (b"PK\x03\x04\xff", "unzip -p"),
        (b"\xff\xfea\0", "iconv -f utf-16"),
    ],
)
def test_what_is_not_read_is_named(start: bytes, advice: str, tmp_path: Path) -> None:
    """Text in another encoding, taken for Latin-1, would become noise that is then translated."""
    (tmp_path / "x").write_bytes(start)
    with pytest.raises(ValueError, match=r"x, line .* is not UTF-8") as raised:
        list(read_lines(tmp_path / "x"))
    assert advice in str(raised.value)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("closed")
    (folder / "in.txt").write_text("a b\n")
    return write_small_package(folder)


IN, OUT = "translate --model package --input in.txt", "--output out.npz"


@pytest.mark.parametrize(
    ("closed", "command", "status", "message"),
    [
        pytest.param("<&- >&- 2>&-", f"{IN} {OUT} --alignment links.txt", 0, "", marks=pytest.mark.slow),
        ("<&-", "translate --model package", 2, "standard input is closed. Expected text there, or the name"),
    ],
)
def test_standard_streams_may_be_closed(
    closed: str, command: str, status: int, message: str, model: Path
) -> None:
    """What is needed and is not there is named; no file gets a closed stream's number."""
    out = model.parent / "out.npz"
    out.unlink(missing_ok=True)
    done = subprocess.run(
        ["bash", "-c", f"{sys.executable} -m convs2s.cli {command} {closed}"],
        cwd=model.parent, env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, "Traceback" in done.stderr) == (status, False), done.stderr
    assert message in done.stderr
    assert out.is_file() == (status == 0)


def test_no_file_gets_the_number_of_a_closed_stream() -> None:
    """What libraries print to standard error would otherwise land in the file."""
    code = "import os, sys; from convs2s.base.messages import replace_closed_streams as replace; replace(); "
    code += "sys.exit(os.open(os.devnull, os.O_RDONLY))"
    command = f'{sys.executable} -c "{code}" <&- >&- 2>&-'
    assert subprocess.run(["bash", "-c", command], cwd=ROOT, check=False).returncode >= 3
