"""How `convs2s translate` reads: pipes and terminals line by line, files in chunks with a progress bar."""

import io
import os
import select
import sys
import threading
from pathlib import Path
from typing import IO

import pytest

from convs2s.cli import main
from convs2s.commands.translate_files import lines_as_they_arrive
from convs2s.package.facts import Facts
from convs2s.package.translator import load
from tests.package.small_package import FACTS

SECONDS = 60
"""Time limit for an answer, which normally takes a few hundredths of a second."""


class Terminal(io.StringIO):
    """A stream that claims to be a terminal and keeps what is written."""

    def isatty(self) -> bool:
        return True


def terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """Replace standard error by a terminal. Not a fixture: pytest would set standard error again after it."""
    shown = Terminal()
    monkeypatch.setattr(sys, "stderr", shown)
    return shown


def pipe() -> tuple[IO[bytes], IO[bytes]]:
    reading, writing = os.pipe()
    return os.fdopen(reading, "rb"), os.fdopen(writing, "wb", buffering=0)


def answer(stream: IO[bytes]) -> bytes:
    """Return the next line; fail if none arrives in time."""
    assert select.select([stream], [], [], SECONDS)[0], "no answer"
    return stream.readline()


def test_a_pipe_is_answered_line_by_line(package: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The sender may wait for a translation before sending the next line, so the pipe is still open."""
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
    to_source.write(b"aus.")  # the last line needs no line end
    to_source.close()
    assert answer(from_output) == first
    command.join(SECONDS)
    assert not command.is_alive()


@pytest.mark.parametrize("text", [b"", b"\n", b"a", b"a\rb\n\x85c\r\n", b"ab\nc\n" * 30 + b"d"])
def test_all_lines_of_a_pipe_arrive_in_order(text: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    r"""A pipe may cut them anywhere, and only \n ends one. Chunks are limited, so memory is, too."""
    monkeypatch.setattr("convs2s.commands.translate_files.PIPE_BYTES", 7)
    reading, writing = pipe()
    with reading:
        with writing:
            writing.write(text)
        arrived = list(lines_as_they_arrive(reading.fileno(), most=4))
    assert [line for lines in arrived for line in lines] == io.BytesIO(text).readlines()
    assert max(map(len, arrived), default=0) <= 4 + 7


def test_a_user_who_types_gets_a_hint_and_a_prompt(
    package: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """They appear only on the terminal: the output, here a file, holds nothing but translations.

    A stranger's model must not control the terminal.
    """
    summary = FACTS.summary()
    monkeypatch.setattr(Facts, "summary", lambda _: f"{summary}\x1b[2J")
    shown = terminal(monkeypatch)
    stdin = Terminal("ein Haus. ein Hund.\n\n")
    monkeypatch.setattr(sys, "stdin", stdin)
    with Path(os.devnull).open("rb") as device:  # like a terminal, not a regular file
        monkeypatch.setattr(stdin, "buffer", device, raising=False)
        assert main(["translate", "--model", str(package), "--device", "cpu"]) == 0
    known = f"{FACTS.name}: {summary}\ufffd[2J\n"
    assert shown.getvalue() == known + "Type a sentence and press Enter. Ctrl-D ends.\n> > > \n"
    sentences = load(package, "cpu").translate(["ein Haus.", "ein Hund."])
    assert capfd.readouterr().out == f"{' '.join(sentences)}\n\n"


def test_a_file_gets_a_bar_with_the_speed(
    package: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The bar counts sentences, empty ones included; it is shown only on a terminal."""
    shown = terminal(monkeypatch)
    (tmp_path / "in.txt").write_text("ein Haus.\n\nein Hund", encoding="utf-8")
    files = ["--input", str(tmp_path / "in.txt"), "--output", str(tmp_path / "out.txt")]
    assert main(["translate", "--model", str(package), "--device", "cpu", *files]) == 0
    last = shown.getvalue().splitlines()[-1]
    assert last.startswith("translate: 100%|")
    assert "3/3" in last
    assert "sentences/s" in last
