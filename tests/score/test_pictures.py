"""Pictures: their content, and that any text gives one, with the same bytes each time."""

import warnings
from pathlib import Path

import matplotlib
import numpy as np
import pytest
from PIL import Image

from convs2s.score.pictures import PANELS, draw_layers, easy_to_read, make_label, plot_curves
from convs2s.text.words.tokenization import MARK_OF_SPACE, MARKS_OF_SPACES


def dark_area(weights: list[list[float]], path: Path) -> tuple[int, int, int, int]:
    """Return left, top, right and bottom of the pixels that differ from a map without attention."""
    pixels = []
    for values in (np.array(weights), np.zeros((2, 3))):
        draw_layers([("title", values)], ["a", "b", "c"], ["d", "e"], path)
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
        draw_layers([("$_$", np.full((12, 12), 1 / 12))] * 3, tokens, tokens, tmp_path / "attention.png")
    assert Image.open(tmp_path / "attention.png").size[0] > 300


def test_a_space_that_text_keeps_is_drawn_as_one() -> None:
    """Its mark is a character for which no font has a picture; other such characters are a square."""
    tokens = [f"a{MARK_OF_SPACE}", chr(MARKS_OF_SPACES[0xA0]), "\ue000"]
    assert [make_label(token) for token in tokens] == ["a␣", "␣", "□"]


def test_sentences_that_fill_a_picture_well_are_drawn_first() -> None:
    """Short sentences show little, long ones are illegible, and empty ones have no attention."""
    shapes = [(4, 6), (5, 25), (0, 0), (26, 9), (6, 7)]
    assert easy_to_read(shapes, 2) == [1, 4]
    assert easy_to_read(shapes, 3) == [0, 1, 3, 4]


def test_pictures_are_the_same_bytes_each_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """DVC hashes them, so they must not depend on date, version or the user's matplotlib settings."""
    written = []
    path = tmp_path / "attention.png"
    for number in range(2):
        draw_layers([("title", np.array([[0.3, 0.7]]))], ["a", "b"], ["c"], path)
        written.append(path.read_bytes())
        monkeypatch.setitem(matplotlib.rcParams, "font.size", 20.0 + number)
        monkeypatch.setitem(matplotlib.rcParams, "savefig.dpi", 30.0)
    assert written[0] == written[1]
    assert b"tEXt" not in written[0]


def test_curves_are_drawn_without_a_point(tmp_path: Path) -> None:
    """A training that fails early has no point yet, and its report must still be written."""
    for name in PANELS:
        table = tmp_path / "curves" / name
        table.parent.mkdir(parents=True, exist_ok=True)
        table.write_text(f"step\t{table.stem}\n")
    plot_curves({"": tmp_path / "curves"}).savefig(tmp_path / "a.png")
    assert Image.open(tmp_path / "a.png").size == (900, 600)


def test_several_runs_share_the_panels(tmp_path: Path) -> None:
    """Each run has a line with its name, which is not taken for a formula; without points it has no line."""
    for name, values in (("$a", "7.1"), ("$b$", "8.2"), ("new", None)):
        loss = tmp_path / name / "train" / "loss.tsv"
        loss.parent.mkdir(parents=True)
        if values:
            loss.write_text(f"step\tloss\n50\t{values}\n")
    figure = plot_curves({name: tmp_path / name for name in ("$a", "$b$", "new")})
    panel, *empty = figure.axes
    assert [float(line.get_ydata()[0]) for line in panel.lines] == [7.1, 8.2]  # type: ignore[index, arg-type]
    assert [text.get_text() for text in figure.legends[0].texts] == [r"\$a", r"\$b\$"]
    assert [len(axes.lines) for axes in empty] == [0, 0, 0]
