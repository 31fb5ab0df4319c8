"""How `convs2s translate` reads: pipes and terminals line by line, files in chunks, with a bar."""

import builtins
import io
import os
import select
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import pytest

from convs2s.cli import main
from convs2s.commands.translate_input import arriving, decoded, is_file, lines_left
from tests.package.small_package import write_small_package

SECONDS = 60
"""Within which an answer must come; it takes a few hundredths of one."""


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_small_package(tmp_path_factory.mktemp("input"))


class Terminal(io.StringIO):
    """What a terminal would show."""

    def isatty(self) -> bool:
        return True


def terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """Make standard error a terminal; not as a fixture, after which pytest would set it again."""
    shown = Terminal()
    monkeypatch.setattr(sys, "stderr", shown)
    return shown


def pipe() -> tuple[IO[bytes], IO[bytes]]:
    reading, writing = os.pipe()
    return os.fdopen(reading, "rb"), os.fdopen(writing, "wb", buffering=0)


def answer(stream: IO[bytes]) -> bytes:
    """Return the next line, which must come soon."""
    assert select.select([stream], [], [], SECONDS)[0], "no answer"
    return stream.readline()


def test_a_pipe_is_answered_line_by_line(package: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """While it stays open: whoever sends a line may wait for its translation before sending the next."""
    (source, to_source), (from_output, output) = pipe(), pipe()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(source))
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(io.BufferedWriter(output)))
    arguments = ["translate", "--model", str(package), "--device", "cpu"]
    command = threading.Thread(target=main, args=(arguments,), daemon=True)
    command.start()
    to_source.write(b"ein Haus.\n")
    first = answer(from_output)
    to_source.write(b"\nein H")
    assert answer(from_output) == b"\n"
    to_source.write(b"aus.")  # the last line needs no end
    to_source.close()
    assert answer(from_output) == first
    command.join(SECONDS)
    assert not command.is_alive()


def test_lines_that_arrive_together_are_translated_together() -> None:
    """As many as a batch at first; as long as more are waiting, twice as many each time."""
    lines = [str(i) for i in range(40)]
    found = list(arriving(iter(lines), 4, 16))
    assert [len(chunk) for chunk in found] == [4, 8, 16, 12]
    assert [line for chunk in found for line in chunk] == lines


def test_lines_before_an_error_are_answered() -> None:
    """The error follows them."""

    def lines() -> Iterator[str]:
        yield "a"
        raise ValueError("line 2")

    found = arriving(lines(), 4, 16)
    assert next(found) == ["a"]
    with pytest.raises(ValueError, match="line 2"):
        next(found)


def test_lines_are_read_as_they_come() -> None:
    """A file of ten million lines need not fit in memory."""
    seen = 0

    def endless() -> object:
        nonlocal seen
        while True:
            seen += 1
            yield b"a\n"

    lines = decoded(endless(), "x")  # type: ignore[arg-type]
    assert [next(lines), next(lines)] == ["a", "a"]
    assert seen == 2


def test_a_byte_order_mark_is_no_text() -> None:
    """Editors of Windows write one at the start of a file; elsewhere it is a character like any other."""
    stream = io.BytesIO("\ufeffja\r\n\ufeffnein\u2028".encode())
    assert list(decoded(stream, "x")) == ["ja", "\ufeffnein\u2028"]


def test_somebody_who_types_gets_a_hint_and_a_prompt(
    package: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """On the terminal alone: the output, which goes to a file here, has translations only."""
    shown, stdin = terminal(monkeypatch), Terminal("ein Haus.\n\n")
    monkeypatch.setattr(sys, "stdin", stdin)
    with Path(os.devnull).open("rb") as device:  # no file, as a terminal is none
        monkeypatch.setattr(stdin, "buffer", device, raising=False)
        assert main(["translate", "--model", str(package), "--device", "cpu"]) == 0
    assert shown.getvalue() == "Type a sentence and press Enter. Ctrl-D ends.\n> > > \n"
    assert capfd.readouterr().out.count("\n") == 2


def test_lines_can_be_edited_where_input_and_output_are_terminals(
    package: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By Python's own input(), with readline; Ctrl-D ends."""
    typed, prompts = iter(["ein Haus."]), list[str]()

    def fake_input(prompt: str) -> str:
        prompts.append(prompt)
        line = next(typed, None)
        if line is None:
            raise EOFError
        return line

    stdin, stdout, _ = Terminal(), Terminal(), terminal(monkeypatch)
    monkeypatch.setattr(stdin, "buffer", io.BytesIO(), raising=False)
    monkeypatch.setattr(stdout, "buffer", io.BytesIO(), raising=False)
    monkeypatch.setattr(sys, "stdin", stdin)
    monkeypatch.setattr(sys, "stdout", stdout)
    monkeypatch.setattr(builtins, "input", fake_input)
    assert main(["translate", "--model", str(package), "--device", "cpu"]) == 0
    assert prompts == ["> ", "> "]
    assert "readline" in sys.modules


def test_a_file_has_a_bar_with_its_speed(
    package: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By sentence, empty ones included, as far as standard error is a terminal."""
    shown = terminal(monkeypatch)
    (tmp_path / "in.txt").write_text("ein Haus.\n\nein Hund", encoding="utf-8")
    files = ["--input", str(tmp_path / "in.txt"), "--output", str(tmp_path / "out.txt")]
    assert main(["translate", "--model", str(package), "--device", "cpu", *files]) == 0
    last = shown.getvalue().splitlines()[-1]
    assert last.startswith("translate: 100%|")
    assert "3/3" in last
    assert "sentences/s" in last


def test_lines_are_counted_from_where_a_file_is(tmp_path: Path) -> None:
    """A shell may have read some already; the last one may lack its end."""
    (tmp_path / "in.txt").write_bytes(b"a\nb\nc")
    with (tmp_path / "in.txt").open("rb") as stream:
        assert is_file(stream)
        stream.seek(2)
        assert lines_left(stream) == 2
        assert stream.read() == b"b\nc"
    source, to_source = pipe()
    with source, to_source:
        assert not is_file(source)
