"""Charts as inline SVG in the page's text color, so that they are readable in dark mode, too."""

import io
import re
from collections.abc import Callable, Sequence
from pathlib import Path

import matplotlib.style
import numpy as np
import pandas as pd
from cycler import cycler
from markupsafe import Markup
from matplotlib.figure import Figure

from convs2s.score.curves import no_formula, plot_curves
from convs2s.score.pictures import save
from pipelines.report.run import Run

INK = "#010203"  # inline() replaces it with the page's text color
COLORS = ["#3b82d6", "#e07b20", "#2f9e6b", "#c2589b", "#8a6fd1", "#b08d1f", "#d05a4a", "#5f8f9e"]
STYLE = {
    "axes.edgecolor": INK, "axes.facecolor": "none", "axes.labelcolor": INK, "axes.titlecolor": INK,
    "axes.prop_cycle": cycler(color=COLORS), "figure.facecolor": "none", "font.size": 10,
    "grid.color": INK, "legend.facecolor": "none", "legend.edgecolor": "none", "svg.fonttype": "none",
    "text.color": INK, "xtick.color": INK, "ytick.color": INK,
}  # fmt: skip


def svg(draw: Callable[[], Figure], title: str) -> Markup:
    """Return a figure as an SVG element, with its title as the label for screen readers."""
    stream = io.StringIO()
    ids = {"svg.hashsalt": title}  # equal parts of different pictures need different ids
    with matplotlib.style.context(["default", STYLE | ids]):
        draw().savefig(stream, format="svg", metadata=dict.fromkeys(("Creator", "Date", "Format", "Type")))
    return Markup(
        inline(stream.getvalue()).replace("<svg", Markup('<svg role="img" aria-label="{}"').format(title), 1)
    )


def inline(text: str) -> str:
    """Return an SVG document of matplotlib as an element that can share a page with others."""
    element = text[text.index("<svg") :].replace(INK, "currentColor")
    element = re.sub(r"<metadata>.*?</metadata>", "", element, flags=re.DOTALL)
    start, end, rest = element.partition(">")
    start = re.sub(r' (xmlns(:\w+)?|version|width|height)="[^"]*"', "", start)
    used = set(re.findall(r"#([\w.]+)", rest))  # unused ids, such as axes_1, repeat in every picture
    return start + end + re.sub(r' id="([^"]*)"', lambda m: m[0] if m[1] in used else "", rest)


def draw_curves(runs: Sequence[Run]) -> Figure:
    """Draw the curves of every training."""
    folders: dict[str, Path] = {}
    for run in runs:
        name = f"{run.name}, " if len(runs) > 1 else ""
        folders |= {f"{name}seed {seed}": run.folder / f"data/trained/{seed}/curves" for seed in run.seeds}
    return plot_curves(folders)


def write_curves(runs: Sequence[Run], path: Path) -> None:
    """Write a PNG of all curves."""
    with matplotlib.style.context("default"):
        save(draw_curves(runs), path)


def curves(runs: Sequence[Run]) -> Markup:
    """Return the curves of all trainings."""
    return svg(lambda: draw_curves(runs), "Training curves")


def by_length(runs: Sequence[Run]) -> Markup:
    """Return BLEU by source length, one group of bars per length class."""

    def draw() -> Figure:
        figure = Figure(figsize=(9, 3.6), layout="constrained")
        axes = figure.add_subplot(xlabel="source words", ylabel="BLEU")
        tables = {run.name: run.table("evaluation/by_length.csv") for run in runs}
        bleu = pd.DataFrame({name: table.set_index("source_words")["bleu"] for name, table in tables.items()})
        width = 0.8 / len(runs)
        for number, run in enumerate(runs):
            places = np.arange(len(bleu)) + (number - (len(runs) - 1) / 2) * width
            bars = axes.bar(places, bleu[run.name], width, label=no_formula(run.name))
            axes.bar_label(bars, bleu[run.name].map("{:.1f}".format).replace("nan", ""), fontsize=8)
        axes.set_xticks(range(len(bleu)), bleu.index)
        if len(runs) > 1:
            figure.legend(loc="outside lower center", ncols=3, fontsize="small")
        return figure

    return svg(draw, "BLEU by source length")


def lengths(run: Run, names: str) -> Markup:
    """Return the numbers of sentences read and kept, by length and side; `names` are its runs."""

    def draw() -> Figure:
        table = run.table("filtered/lengths.csv")
        figure = Figure(figsize=(9, 3.2), layout="constrained")
        used = table[table.drop(columns="words").any(axis=1)]["words"]
        edges = [*table["words"], float(table["words"].iloc[-1] + table["words"].iloc[1])]
        sides = figure.subplots(1, 2, sharey=True)
        sides[0].set_ylabel("sentences")
        for axes, side in zip(sides, ("source", "target"), strict=True):
            for kind, alpha in (("read", 0.35), ("kept", 1.0)):
                counts = table[f"{side}_{kind}"]
                axes.stairs(counts, edges, fill=True, color=COLORS[0], alpha=alpha, label=kind)
            axes.set(
                title=f"{side} sentences", xlabel="words", xlim=(0, used.max() + edges[1]), yscale="symlog"
            )
            axes.yaxis.set_major_formatter("{x:,.0f}")
        figure.legend(
            *axes.get_legend_handles_labels(), loc="outside lower center", ncols=2, fontsize="small"
        )
        return figure

    return svg(draw, f"Sentences by length, read and kept: {names}")
