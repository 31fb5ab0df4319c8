"""The command `convs2s attention`: one sentence in, a picture out."""

from pathlib import Path

import pytest
from PIL import Image

from convs2s.cli import main


def test_a_sentence_gives_a_picture(tmp_path: Path, package: Path) -> None:
    """Tokens of any script can be drawn."""
    picture = tmp_path / "plot.png"
    assert main(["attention", "Das 日本 مرحبا.", "--model", str(package), "--out", str(picture)]) == 0
    with Image.open(picture) as image:
        assert image.format == "PNG"


@pytest.mark.parametrize(
    ("text", "folder", "message"),
    [
        ("Haus", "none", "none is not a folder"),
        (" ", None, "a text without words"),
    ],
)
def test_errors_leave_no_file(
    tmp_path: Path,
    package: Path,
    text: str,
    folder: str | None,
    message: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A folder that is none, and a text with nothing to translate."""
    out = ["--out", str(tmp_path / "plot.png")]
    assert main(["attention", text, "--model", folder or str(package), *out]) == 2
    assert message in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
