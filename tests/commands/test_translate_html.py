"""`convs2s translate --format html` as a user runs it."""

import gzip
from pathlib import Path

import pytest

from convs2s.cli import main
from convs2s.package.html_page import translate_html
from convs2s.package.translator import load

PAGE = "<!DOCTYPE html>\r\n<p>ein <b>Haus</b>. Und\n noch\r\neins &lt; 🙂</p>\n\n<pre>a\r\nb</pre>"


def run(page: bytes, folder: Path, *options: str) -> int:
    (folder / "in.html").write_bytes(page)
    files = ("--input", str(folder / "in.html"), "--output", str(folder / "out.html"))
    return main(["translate", "--format", "html", "--device", "cpu", *options, *files])


def test_a_file_is_one_page(package: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It is what Python gives; line ends, a byte order mark and the missing last line end stay."""
    assert run(b"\xef\xbb\xbf" + PAGE.encode(), tmp_path, "--model", str(package)) == 0
    translated = (tmp_path / "out.html").read_bytes().decode("utf-8")
    assert translated == "\ufeff" + translate_html(load(package, "cpu"), PAGE)
    assert translated.startswith("\ufeff<!DOCTYPE html>\r\n<p>") and translated.endswith(
        "\n\n<pre>a\r\nb</pre>"
    )
    assert "3 unknown characters" in capsys.readouterr().err


def test_elements_that_lose_their_words_are_counted(
    package: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The model writes fewer words than there are elements."""
    assert run(b"<a>Haus</a> " * 300, tmp_path, "--model", str(package)) == 0
    emptied = (tmp_path / "out.html").read_bytes().count(b"<a></a>")
    assert emptied > 0
    assert f"had a word and have none in the translation: {emptied}" in capsys.readouterr().err


def test_options_are_those_of_text(package: Path, tmp_path: Path) -> None:
    """Compressed pages, samples, and each segment as a whole."""
    options = ("--model", str(package), "--no-split-sentences", "--sample", "--seed", "3")
    outputs = []
    for page in (PAGE.encode(), gzip.compress(PAGE.encode())):
        assert run(page, tmp_path, *options) == 0
        outputs.append((tmp_path / "out.html").read_bytes())
    assert outputs[0] == outputs[1]
    assert outputs[0].count(b"<b>") == 1


@pytest.mark.parametrize(
    ("page", "options", "message"),
    [
        (b"<p>\n\xff", (), "in.html, line 2: byte 0 is 0xff, which is not UTF-8"),
        (b"", ("--n-best", "2"), "--n-best is for lines of text. Leave it out, or leave out --format html."),
        (b"", ("--scores", "--alignment", "x"), "--scores, --alignment is for lines of text."),
    ],
)
def test_what_cannot_be_done_is_said(
    package: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    page: bytes,
    options: tuple[str, ...],
    message: str,
) -> None:
    """Nothing is written then."""
    assert run(page, tmp_path, "--model", str(package), *options) == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "out.html").exists()
