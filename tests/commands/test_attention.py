"""The command `convs2s attention`: one sentence in, a picture and numbers out."""

import argparse
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from convs2s.commands.folders import add_attention
from tests.package.small_package import write_small_package


def call(*arguments: str) -> None:
    """Run the command as `convs2s` does."""
    parser = argparse.ArgumentParser()
    add_attention(parser.add_subparsers(required=True))
    options = parser.parse_args(["attention", *arguments])
    options.run(options)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(write_small_package(tmp_path_factory.mktemp("model")))


def test_a_sentence_gives_a_picture_and_its_numbers(tmp_path: Path, model: str) -> None:
    """Tokens of any script can be drawn; this model has one layer, so its average is that layer."""
    picture, numbers = tmp_path / "plot.png", tmp_path / "plot.NPZ"
    call("Das ist 日本 مرحبا.", "--model", model, "--out", str(picture), "--out", str(numbers))
    with Image.open(picture) as image:
        assert image.format == "PNG"
    with np.load(numbers) as arrays:
        assert arrays["layers"].shape == (1, len(arrays["target"]), len(arrays["source"]))
        np.testing.assert_array_equal(arrays["layers"][0], arrays["average"])


def test_each_layer_and_the_average_are_drawn(
    tmp_path: Path, model: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each map carries its name, with the tokens of both sides on its axes."""
    drawn: list[tuple[list[str], list[str], list[str], Path]] = []
    monkeypatch.setattr(
        "convs2s.score.pictures.draw_layers",
        lambda maps, source, target, path: drawn.append(([name for name, _ in maps], source, target, path)),
    )
    call("Haus", "--model", model, "--out", str(tmp_path / "plot.png"))
    (names, source, target, path) = drawn[0]
    assert names == ["layer 1", "average"]
    assert "".join(source) == "Haus▁</s>"
    assert target[-1] == "</s>"
    assert path == tmp_path / "plot.png"


def test_an_unknown_file_type_is_refused_at_once(tmp_path: Path) -> None:
    """The suffix is checked before the model is loaded: this test has no model."""
    with pytest.raises(ValueError, match=r"plot.svg: expected the suffix .png for heat maps or"):
        call("Haus", "--model", str(tmp_path / "none"), "--out", str(tmp_path / "plot.svg"))


def test_a_missing_model_and_an_empty_text_are_named(tmp_path: Path, model: str) -> None:
    """Users can fix both errors, and neither may leave a file behind."""
    out = str(tmp_path / "plot.png")
    with pytest.raises(FileNotFoundError, match="none is not a folder"):
        call("Haus", "--model", str(tmp_path / "none"), "--out", out)
    with pytest.raises(ValueError, match="a text without words"):
        call(" ", "--model", model, "--out", out)
    assert list(tmp_path.iterdir()) == []
