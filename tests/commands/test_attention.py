"""The command `convs2s attention`: one sentence in, a picture out."""

from pathlib import Path

import pytest
from PIL import Image

from convs2s.cli import main


def test_a_sentence_gives_a_picture(
    tmp_path: Path, package: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Tokens of any script can be drawn; a text with nothing to translate is an error and leaves no file."""
    picture = tmp_path / "plot.png"
    options = ["--model", str(package), "--out", str(picture)]
    assert main(["attention", " ", *options]) == 2
    assert "a text without words" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
    assert main(["attention", "Das 日本 مرحبا.", *options]) == 0
    with Image.open(picture) as image:
        assert image.format == "PNG"
