"""The command `convs2s attention`: one sentence in, a picture and numbers out."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from convs2s.cli import main


def test_a_sentence_gives_a_picture_and_its_numbers(tmp_path: Path, package: Path) -> None:
    """Tokens of any script can be drawn; this model has one layer, so its average is that layer."""
    picture, numbers = tmp_path / "plot.png", tmp_path / "plot.NPZ"
    files = ["--out", str(picture), "--out", str(numbers)]
    assert main(["attention", "Das 日本 مرحبا.", "--model", str(package), *files]) == 0
    with Image.open(picture) as image:
        assert image.format == "PNG"
    with np.load(numbers) as arrays:
        assert arrays["layers"].shape == (1, len(arrays["target"]), len(arrays["source"]))
        np.testing.assert_array_equal(arrays["layers"][0], arrays["average"])


@pytest.mark.parametrize(
    ("text", "folder", "out", "message"),
    [
        ("Haus", "none", "plot.svg", "plot.svg: expected the suffix .png for heat maps or"),
        ("Haus", "none", "plot.png", "none is not a folder"),
        (" ", None, "plot.png", "a text without words"),
    ],
)
def test_errors_leave_no_file(
    tmp_path: Path, package: Path, text: str, folder: str | None, out: str, message: str,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    """The suffix is checked before the model is loaded."""
    assert main(["attention", text, "--model", folder or str(package), "--out", str(tmp_path / out)]) == 2
    assert message in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
