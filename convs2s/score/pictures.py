"""Pictures: attention heat maps as in Fig. 3, progress of trainings; byte-identical on every run."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib
import matplotlib.style
import numpy as np
from matplotlib.figure import Figure
from matplotlib.font_manager import findfont, get_font
from matplotlib.lines import Line2D
from matplotlib.ticker import LogFormatter
from numpy.typing import NDArray

from convs2s.base.files import atomic_path
from convs2s.text.words.tokenization import SHOWN_SPACES

FONT = "DejaVu Sans"  # comes with matplotlib, so pictures are the same everywhere
MISSING = "\N{WHITE SQUARE}"
LONGEST_LABEL = 20  # characters
INCHES_PER_TOKEN = 0.22  # in maps side by side
INCHES_OF_LABELS = 1.6
LARGEST_MAP = 60  # tokens per side; beyond that, a picture is unreadable
PANELS = {
    "train/loss.tsv": ("training loss, nats per token", "linear"),
    "valid/perplexity.tsv": ("validation perplexity", "log"),
    "train/learning_rate.tsv": ("learning rate", "log"),
    "train/gradient_norm.tsv": ("gradient norm before clipping", "log"),
}


def draw_layers(
    maps: Sequence[tuple[str, NDArray[np.floating[Any]]]],
    source: Sequence[str],
    target: Sequence[str],
    path: Path,
) -> None:
    """Write a PNG with a grid of titled maps of attention weights (T, S), atomically.

    Source tokens are on the y axis, target tokens on the x axis, as in Fig. 3; only the first 60 are drawn.
    """
    source, target = source[:LARGEST_MAP], target[:LARGEST_MAP]
    source_labels = [make_label(token) for token in source]
    target_labels = [make_label(token) for token in target]
    columns = math.ceil(math.sqrt(len(maps)))
    rows = math.ceil(len(maps) / columns)
    width = INCHES_OF_LABELS + INCHES_PER_TOKEN * len(target)
    height = INCHES_OF_LABELS + INCHES_PER_TOKEN * len(source)
    with matplotlib.style.context("default"):  # ignore the user's own settings
        figure = Figure(figsize=(columns * width + 1, rows * height), layout="constrained")
        grid = figure.subplots(rows, columns, squeeze=False)
        for axes in grid.flat[len(maps) :]:
            axes.set_axis_off()
        for axes, (title, weights) in zip(grid.flat, maps, strict=False):
            drawn = weights[: len(target), : len(source)].astype(np.float32).T
            image = axes.imshow(drawn, cmap="Greys", vmin=0, vmax=1, aspect="auto")
            # Without parse_math=False, a token like $x^$ would be parsed as a formula, and fail.
            axes.set_xticks(range(len(target)), target_labels, rotation=90, family=FONT, parse_math=False)
            axes.set_yticks(range(len(source)), source_labels, family=FONT, parse_math=False)
            axes.xaxis.tick_top()
            axes.xaxis.set_label_position("top")
            axes.set_xlabel("target")
            axes.set_ylabel("source")
            axes.set_title(title, parse_math=False)
        figure.colorbar(image, ax=grid, shrink=0.5).set_label("attention")
        with atomic_path(path) as temporary:  # without matplotlib's version, which would change the hash
            figure.savefig(temporary, format="png", dpi=100, metadata={"Software": None})


def easy_to_read(shapes: Sequence[tuple[int, ...]], count: int) -> list[int]:
    """Return the indices of maps worth drawing, by their shapes (T, S): those with 5 to 25 tokens per side.

    If there are fewer than `count`, all are; except (0, 0), of an empty sentence.
    """
    easy = [i for i, shape in enumerate(shapes) if all(5 <= tokens <= 25 for tokens in shape)]
    return easy if len(easy) >= count else [i for i, shape in enumerate(shapes) if all(shape)]


def make_label(token: str) -> str:
    """Return a token as a label: shortened if too long, and only with characters that the font can show.

    A space that raw text keeps is an open box.
    """
    font = get_font(findfont(FONT))
    label = "".join(
        char if char.isprintable() and font.get_char_index(ord(char)) else MISSING
        for char in token.translate(SHOWN_SPACES)
    )
    return label if len(label) <= LONGEST_LABEL else label[: LONGEST_LABEL - 1] + "…"


def plot_curves(trainings: Mapping[str, Path]) -> Figure:
    """Return a figure of the curves of trainings, in the current matplotlib style.

    Args:
        trainings: by name, folders whose train/ and valid/ hold tab-separated tables of step and value. A
            curve without points, from a training that has just started, stays empty.
    """
    import pandas as pd  # noqa: PLC0415  # not needed to draw attention

    figure = Figure(figsize=(9, 6), layout="constrained")
    lines = dict[str, Line2D]()
    for axes, (name, (title, scale)) in zip(figure.subplots(2, 2).flat, PANELS.items(), strict=True):
        axes.set_title(title, fontsize="medium")
        axes.set_xlabel("updates")
        axes.set_yscale(scale)
        for label, curves in trainings.items():
            if (curves / name).is_file():
                table = pd.read_csv(curves / name, sep="\t")
                style = {"marker": "o" if len(table) < 30 else "", "markersize": 3, "linewidth": 1}
                lines[label] = axes.plot(table["step"], table[Path(name).stem], **style)[0]
        if scale == "log":  # 6 and 1e-02, not 6×10⁰ and 10⁻²
            axes.yaxis.set_major_formatter(LogFormatter())
            axes.yaxis.set_minor_formatter(LogFormatter())
        axes.grid(alpha=0.3)
    if len(lines) > 1:
        names = [label.replace("$", r"\$") for label in lines]  # a formula otherwise
        figure.legend([*lines.values()], names, loc="outside lower center", ncols=3, fontsize="small")
    return figure
