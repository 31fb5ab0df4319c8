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
from backports import zstd

from convs2s.base.files import read_lines
from convs2s.commands.translate_files import open_input, open_output
from convs2s.text.sources.memory import read_memory
from convs2s.text.sources.pair_files import file_part
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
    """As everywhere."""
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
    """By every reader of text and by `translate --input`; parallel compressors write several parts."""
    (tmp_path / name).write_bytes(b"".join(map(compress, (b"eins\n", b"", "zwölf\n".encode()))))
    assert list(read_lines(tmp_path / name)) == ["eins", "zwölf"]
    with open_input(tmp_path / name) as stream:
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
    """Taken for Latin-1, it would become noise that is then translated."""
    (tmp_path / "x").write_bytes(start)
    with pytest.raises(ValueError, match=r"x, line .* is not UTF-8") as raised:
        list(read_lines(tmp_path / "x"))
    assert advice in str(raised.value)


ROWS = [[f"the {word} sleeps", f"{word} schläft"] for word in "abcdefghijkl"]


def table(rows: list[list[str]], folder: Path) -> list[tuple[str, str]]:
    (folder / "x.tsv").write_text("".join("\t".join(row) + "\n" for row in rows))
    return list(file_part([folder / "x.tsv"], (0, 1), ("en", "de")).pairs)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([[f'"{cell}"' for cell in row] for row in ROWS], "line 1 and the following have quotes around each"),
        ([["en", "de"], *ROWS], "line 1 looks like a header: taken as a pair"),
        ([["source_text", "Target text"], *ROWS], "line 1 looks like a header"),
        ([*ROWS, ["a", "b", "c"]], "line 13 has more or fewer columns than line 1"),
        ([*ROWS, [r"one\ntwo", "eins"]], r"line 13 has escapes such as \n or \t: kept as text"),
        (ROWS, ""),
        ([["Hi", "Hey"], ["go", "geh"], *ROWS], ""),
        ([['"Yes," he said.', "a"], *ROWS], ""),
    ],
)
def test_a_table_that_is_not_quite_one_is_warned_of(
    rows: list[list[str]], message: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """With file, line and what was done."""
    assert len(table(rows, tmp_path)) == len(rows)
    assert message in caplog.text and ("x.tsv" in caplog.text) == bool(message)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([[row[0], ""] for row in ROWS], "column 1 is empty in the first 12 rows"),
        ([["0.75", row[0]] for row in ROWS], "column 0 has only numbers"),
        ([[row[0], row[0]] for row in ROWS], "both columns are the same"),
    ],
)
def test_a_table_that_cannot_be_meant_is_refused(rows: list[list[str]], message: str, tmp_path: Path) -> None:
    """The columns are wrong, or the file."""
    with pytest.raises(ValueError, match=message):
        table(rows, tmp_path)


DTD = '<!DOCTYPE tmx SYSTEM "tmx14.dtd" [<!ENTITY a "boom">]>'
TMX = DTD + '\n<tmx version="1.4"><header/><body>{}</body></tmx>'
TAGGED = 'A <bpt i="1">{\\b </bpt>big<ept i="1">}</ept> <hi>dog</hi> &amp;\n cat &a;'
TUV = '<tuv xml:lang="{}"><seg>{}</seg></tuv>'


def tu(*variants: tuple[str, str]) -> str:
    return f"<tu>{''.join(TUV.format(*variant) for variant in variants)}</tu>"


XLIFF = (
    '<xliff version="1.2" xmlns="urn:oasis:names:tc:xliff:document:1.2"><file source-language="{}" '
    'target-language="{}"><body><trans-unit id="1"><source>Hello</source><target>Hallo</target><alt-trans>'
    "<target>no</target></alt-trans></trans-unit><trans-unit id='2'><source>Bye</source></trans-unit></body>"
    "</file></xliff>"
)


@pytest.mark.parametrize(
    ("text", "pairs"),
    [
        (TMX.format(tu(("en-US", "Hello"), ("de_DE", "Hallo"))), [("Hello", "Hallo")]),
        (TMX.format(tu(("de", "Hallo"), ("fr", "Salut"), ("EN", "Hello"))), [("Hello", "Hallo")]),
        (TMX.format(tu(("en", TAGGED), ("de", "x"))), [("A big dog & cat", "x")]),
        (TMX.format(tu(("en", "a")) + tu(("en", "b"), ("de", "c"))), [("b", "c")]),
        (XLIFF.format("en-GB", "de"), [("Hello", "Hallo")]),
        (XLIFF.format("de", "en"), [("Hallo", "Hello")]),
        (
            '<xliff xmlns="urn:oasis:names:tc:xliff:document:2.0" srcLang="en" trgLang="de"><file><unit>'
            "<segment><source>A <pc>b</pc><ph/></source><target>C</target></segment></unit></file></xliff>",
            [("A b", "C")],
        ),
    ],
)  # fmt: skip
def test_a_translation_memory_is_read(text: str, pairs: list[tuple[str, str]], tmp_path: Path) -> None:
    """By language codes, without inline tags, in either direction; also in UTF-16 and compressed."""
    for encoding in ("utf-8", "utf-16"):
        (tmp_path / "x.tmx").write_bytes(gzip.compress(text.encode(encoding)))
        assert list(read_memory(tmp_path / "x.tmx", ("en", "de"))) == pairs


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (TMX.format(tu(("en", "Hello"), ("fr", "Salut"))), "expected segments in en and de, found en, fr"),
        (TMX.format(""), "found no segments"),
        (TMX.format("<tu>"), "is not well-formed XML: .*line 2"),
        ("Hello\tHallo\n", "is not well-formed XML"),
    ],
)
def test_another_memory_is_refused(text: str, message: str, tmp_path: Path) -> None:
    """With what was found in it."""
    (tmp_path / "x.tmx").write_text(text)
    with pytest.raises(ValueError, match=message):
        list(read_memory(tmp_path / "x.tmx", ("en", "de")))


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
    """What libraries print there would land in the file."""
    code = "import os, sys; from convs2s.base.messages import replace_closed_streams as replace; replace(); "
    code += "sys.exit(os.open(os.devnull, os.O_RDONLY))"
    command = f'{sys.executable} -c "{code}" <&- >&- 2>&-'
    assert subprocess.run(["bash", "-c", command], cwd=ROOT, check=False).returncode >= 3
