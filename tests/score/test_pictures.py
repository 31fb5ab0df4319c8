"""Pictures: their content, and that any text gives one, with the same bytes each time."""

import warnings
from pathlib import Path

import matplotlib
import numpy as np
import pytest
from matplotlib.figure import Figure
from PIL import Image

from convs2s.score.pictures import (
    draw_attention,
    draw_layers,
    draw_members,
    draw_scores,
    easy_to_read,
)
from convs2s.score.tables import length_table, score_table

TOKENS = (["a", "b", "c"], ["d", "e"])
SCORES = score_table(
    [
        {"text": text, "member": member, "bleu": bleu, "chrf": 2 * bleu}
        for text, gain in (("plain", 0.0), ("replaced", 1.0))
        for member, bleu in (("1", 20 + gain), ("2", 22 + gain), ("ensemble", 30 + gain))
    ]
)


def dark_area(weights: list[list[float]], path: Path) -> tuple[int, int, int, int]:
    """Return left, top, right and bottom of the pixels that differ from a map without attention."""
    pixels = []
    for values in (np.array(weights), np.zeros((2, 3))):
        draw_attention(values, ["a", "b", "c"], ["d", "e"], "title", path)
        pixels.append(np.asarray(Image.open(path).convert("L")).astype(int))
    rows, columns = np.nonzero(pixels[0] != pixels[1])
    return columns.min(), rows.min(), columns.max(), rows.max()


def test_a_heat_map_is_dark_where_attention_is(tmp_path: Path) -> None:
    """The first target token attends to the last source token, so the bottom left cell is dark."""
    path = tmp_path / "attention.png"
    left, top, right, bottom = dark_area([[1, 1, 1], [1, 1, 1]], path)
    cell = dark_area([[0, 0, 1], [0, 0, 0]], path)
    width, height = (right - left) / 2, (bottom - top) / 3
    assert cell == pytest.approx((left, bottom - height, left + width, bottom), abs=2)


def test_any_token_can_be_drawn_without_warning(tmp_path: Path) -> None:
    """Formulas, other scripts, control characters, emoji and line ends are ordinary tokens."""
    tokens = ["$x^$", "日本", "\x07", "\u2028", "😀", "▁über", "\\frac", "", "\n", "x" * 500, "_{", "%"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        draw_attention(np.full((12, 12), 1 / 12), tokens, tokens, "$_$", tmp_path / "attention.png")
        draw_layers([("average", np.full((12, 12), 1 / 12))], tokens, tokens, tmp_path / "layers.png")
    assert Image.open(tmp_path / "attention.png").size[0] > 300


def test_sentences_that_fill_a_picture_well_are_drawn_first() -> None:
    """Short sentences show little, long ones are illegible, and empty ones have no attention."""
    shapes = [(4, 6), (5, 25), (0, 0), (26, 9), (6, 7)]
    assert easy_to_read(shapes, 2) == [1, 4]
    assert easy_to_read(shapes, 3) == [0, 1, 3, 4]


def test_pictures_are_the_same_bytes_each_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """DVC hashes them, so they must not depend on date, version or the user's matplotlib settings."""
    by_length = length_table([3, 9], [["a b", "c"]], ["a b", "d"])
    written = []
    for number in range(2):
        draw_attention(np.array([[0.3, 0.7]]), ["a", "b"], ["c"], "title", tmp_path / "attention.png")
        draw_scores(SCORES, by_length, tmp_path / "scores.png")
        written.append([(tmp_path / name).read_bytes() for name in ("attention.png", "scores.png")])
        monkeypatch.setitem(matplotlib.rcParams, "font.size", 20.0 + number)
        monkeypatch.setitem(matplotlib.rcParams, "savefig.dpi", 30.0)
    assert written[0] == written[1]
    assert not any(b"tEXt" in content for content in written[0])


def test_the_score_plot_has_a_bar_per_model_score_and_text() -> None:
    """Models are the seeds, mean and ensemble; the standard deviation is the mean's error bar."""
    axes = Figure().add_subplot()
    draw_members(axes, SCORES)
    assert [label.get_text() for label in axes.get_xticklabels()] == ["seed 1", "seed 2", "mean", "ensemble"]
    heights = [patch.get_height() for patch in axes.patches]  # type: ignore[attr-defined]
    assert heights == [20, 22, 21, 30, 40, 44, 42, 60, 21, 23, 22, 31, 42, 46, 44, 62]
    legend = axes.get_legend()
    assert legend is not None
    assert [t.get_text() for t in legend.get_texts()] == [
        "BLEU, plain", "chrF2, plain", "BLEU, replaced", "chrF2, replaced",
    ]  # fmt: skip
