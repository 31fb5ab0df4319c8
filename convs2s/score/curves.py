"""Training progress in one picture: loss, perplexity, learning rate and gradient norm over updates."""

from collections.abc import Mapping
from pathlib import Path

import matplotlib.style
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import LogFormatter

from convs2s.score.pictures import save

PANELS = {
    "train/loss.tsv": ("training loss, nats per token", "linear"),
    "valid/perplexity.tsv": ("validation perplexity", "log"),
    "train/learning_rate.tsv": ("learning rate", "log"),
    "train/gradient_norm.tsv": ("gradient norm before clipping", "log"),
}


def plot_curves(trainings: Mapping[str, Path]) -> Figure:
    """Return a figure of the curves of trainings, in the current matplotlib style.

    Args:
        trainings: by name, folders whose train/ and valid/ hold tab-separated tables of step and value. A
            curve without points, from a training that has just started, stays empty.
    """
    figure, lines = Figure(figsize=(9, 6), layout="constrained"), dict[str, Line2D]()
    for axes, (name, (title, scale)) in zip(figure.subplots(2, 2).flat, PANELS.items(), strict=True):
        axes.set_title(title, fontsize="medium")
        axes.set_xlabel("updates")
        for label, curves in trainings.items():
            if (curves / name).is_file():
                table = pd.read_csv(curves / name, sep="\t")
                values = table[Path(name).stem]
                marked = "o" if len(table) < 30 else ""
                lines[label] = axes.plot(table["step"], values, marker=marked, markersize=3, linewidth=1)[0]
                if len(table) and (values > 0).all():
                    axes.set_yscale(scale)
        if axes.get_yscale() == "log":
            axes.yaxis.set_major_formatter(PlainNumbers())
            axes.yaxis.set_minor_formatter(PlainNumbers())
        axes.grid(alpha=0.3)
    if len(lines) > 1:
        names = [*map(no_formula, lines)]
        figure.legend([*lines.values()], names, loc="outside lower center", ncols=3, fontsize="small")
    return figure


class PlainNumbers(LogFormatter):
    """Labels the ticks that matplotlib chooses on a logarithmic axis as 6 and 0.01, not 6×10⁰ and 10⁻²."""

    def __call__(self, x: float, pos: int | None = None) -> str:
        """Return a tick's label; empty if it has none."""
        return f"{x:g}" if super().__call__(x, pos) else ""


def no_formula(text: str) -> str:
    """Return the text with dollar signs escaped, so that matplotlib draws them."""
    return text.replace("$", r"\$")


def draw_curves(curves: Path, path: Path) -> None:
    """Write a PNG of the curves of one training, whose folder is as for `plot_curves`."""
    with matplotlib.style.context("default"):
        save(plot_curves({"": curves}), path)
