"""The picture of training progress."""

from pathlib import Path

import matplotlib.image
import pytest

from convs2s.score.pictures import PANELS, plot_curves


@pytest.mark.parametrize("points", [0, 40])
def test_it_is_drawn_from_any_number_of_points(tmp_path: Path, points: int) -> None:
    """Training that fails early has no points."""
    for name in PANELS:
        table = tmp_path / "curves" / name
        table.parent.mkdir(parents=True, exist_ok=True)
        rows = "".join(f"{50 * (i + 1)}\t{9 / (i + 1)}\n" for i in range(points))
        table.write_text(f"step\t{table.stem}\n{rows}")
    plot_curves({"": tmp_path / "curves"}).savefig(tmp_path / "a.png")
    assert matplotlib.image.imread(tmp_path / "a.png").shape == (600, 900, 4)


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
