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


def test_the_package_that_draws_is_named_where_it_is_missing(
    package: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever installed the library alone learns what else to install."""
    monkeypatch.setattr("convs2s.commands.shared.find_spec", lambda _: None)
    assert main(["attention", "Das", "--model", str(package), "--out", "plot.png"]) == 2
    expected = "attention needs matplotlib. Install it: pip install 'convs2s[attention]'."
    assert expected in capsys.readouterr().err
