"""Heat maps of several layers in one picture: each in its place, for any tokens."""

import warnings
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from convs2s.score.layer_pictures import draw_layers

TOKENS = (["a", "b", "c"], ["d", "e"])


def drawn(maps: list[NDArray[np.float64]], path: Path) -> NDArray[np.int64]:
    """Draw the maps; return the picture's gray values."""
    draw_layers([(f"layer {i}", weights) for i, weights in enumerate(maps)], *TOKENS, path)
    return np.asarray(Image.open(path).convert("L")).astype(int)


def test_maps_are_laid_out_by_row_and_dark_where_attention_is(tmp_path: Path) -> None:
    """With five maps in three columns, the fifth is second in row two; its target 2 attends to source 1."""
    path = tmp_path / "layers.png"
    none, all_, one = np.zeros((2, 3)), np.ones((2, 3)), np.array([[0.0, 0, 0], [1, 0, 0]])
    blank = drawn([none] * 5, path)

    def changed(maps: list[NDArray[np.float64]]) -> tuple[int, int, int, int]:
        """Return left, top, right and bottom of the pixels that differ from blank maps."""
        rows, columns = np.nonzero(drawn(maps, path) != blank)
        return columns.min(), rows.min(), columns.max(), rows.max()

    first = changed([all_, none, none, none, none])
    fifth = changed([none, none, none, none, all_])
    cell = changed([none, none, none, none, one])
    assert fifth[0] > first[2]  # to the right of the first column
    assert fifth[1] > first[3]  # below the first row
    assert fifth[2] < Image.open(path).size[0] * 2 / 3
    left, top, right, bottom = fifth
    width, height = (right - left) / 2, (bottom - top) / 3
    assert cell == pytest.approx((right - width, top, right, top + height), abs=2)


def test_any_tokens_can_be_drawn_without_warning(tmp_path: Path) -> None:
    """Formulas, other scripts, control characters and long words are ordinary tokens."""
    tokens = ["$x^$", "日本", "مرحبا", "\x07", "\u2028", "😀", "\\frac", "", "\n", "x" * 500]
    maps = [("layer 1", np.full((10, 10), 0.1)), ("average", np.full((10, 10), 0.1))]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        draw_layers(maps, tokens, tokens, tmp_path / "layers.png")
    assert Image.open(tmp_path / "layers.png").size[0] > 600


def test_a_very_long_sentence_gives_a_picture_of_its_beginning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Single maps are cut the same way; the NPZ file has all tokens."""
    monkeypatch.setattr("convs2s.score.layer_pictures.LARGEST_MAP", 6)  # a map of 60 takes a second
    for length in (6, 10):
        weights = np.zeros((length, length), dtype=np.float32)
        draw_layers([("average", weights)], ["s"] * length, ["t"] * length, tmp_path / f"{length}.png")
    assert (tmp_path / "10.png").read_bytes() == (tmp_path / "6.png").read_bytes()


def test_a_failed_picture_leaves_the_old_one(tmp_path: Path) -> None:
    """A picture appears complete or not at all; its folder is created if needed."""
    path = tmp_path / "new" / "layers.png"
    draw_layers([("average", np.zeros((2, 3)))], *TOKENS, path)
    before = path.read_bytes()
    with pytest.raises(TypeError):
        draw_layers([("average", np.zeros((2, 3, 5)))], *TOKENS, path)
    assert path.read_bytes() == before
    assert [file.name for file in path.parent.iterdir()] == ["layers.png"]
