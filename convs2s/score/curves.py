"""Training progress in one picture: loss, perplexity, learning rate and gradient norm over updates."""

from pathlib import Path

import matplotlib.style
import pandas as pd
from matplotlib.figure import Figure

from convs2s.score.pictures import save

PANELS = {
    "train/loss.tsv": ("training loss, nats per token", "linear"),
    "valid/perplexity.tsv": ("validation perplexity", "log"),
    "train/learning_rate.tsv": ("learning rate", "log"),
    "train/gradient_norm.tsv": ("gradient norm before clipping", "log"),
}


def draw_curves(curves: Path, path: Path) -> None:
    """Write a PNG of a training's curves.

    Args:
        curves: folder whose train/ and valid/ hold tab-separated tables: step and value.
        path: file to write; a curve without points, from a training that has just begun, stays empty.
    """
    with matplotlib.style.context("default"):
        figure = Figure(figsize=(9, 6), layout="constrained")
        for axes, (name, (title, scale)) in zip(figure.subplots(2, 2).flat, PANELS.items(), strict=True):
            axes.set_title(title, fontsize="medium")
            axes.set_xlabel("updates")
            if (curves / name).is_file():
                table = pd.read_csv(curves / name, sep="\t")
                values = table[Path(name).stem]
                marked = "o" if len(table) < 30 else ""
                axes.plot(table["step"], values, marker=marked, markersize=3, linewidth=1)
                if len(table) and (values > 0).all():
                    axes.set_yscale(scale)
            axes.grid(alpha=0.3)
        save(figure, path)
