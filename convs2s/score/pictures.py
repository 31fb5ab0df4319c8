"""Pictures: attention heat maps as in Fig. 3, scores, progress of trainings; byte-identical on every run."""

import math
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import matplotlib
import matplotlib.style
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.font_manager import findfont, get_font
from matplotlib.image import AxesImage
from matplotlib.lines import Line2D
from matplotlib.ticker import LogFormatter
from numpy.typing import NDArray

from convs2s.base.files import atomic_path

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


def draw_attention(
    weights: NDArray[np.floating[Any]], source: Sequence[str], target: Sequence[str], title: str, path: Path
) -> None:
    """Write a PNG of attention weights (T, S): source on the y axis, target on the x axis, as in Fig. 3.

    Of sentences longer than 60 tokens, only the first 60 tokens are drawn.
    """
    source, target = source[:LARGEST_MAP], target[:LARGEST_MAP]
    with matplotlib.style.context("default"):  # ignore the user's own settings
        figure = Figure(figsize=(2 + 0.28 * len(target), 2 + 0.28 * len(source)), layout="constrained")
        axes = figure.add_subplot()
        image = draw_map(axes, weights, source, target)
        figure.suptitle(title, fontsize="medium", parse_math=False)
        figure.colorbar(image, ax=axes, shrink=0.8).set_label("attention")
        save(figure, path)


def draw_layers(
    maps: Sequence[tuple[str, NDArray[np.floating[Any]]]],
    source: Sequence[str],
    target: Sequence[str],
    path: Path,
) -> None:
    """Write a PNG with a grid of maps like those of `draw_attention`, each with its title, atomically."""
    source, target = source[:LARGEST_MAP], target[:LARGEST_MAP]
    columns = math.ceil(math.sqrt(len(maps)))
    rows = math.ceil(len(maps) / columns)
    width, height = (INCHES_OF_LABELS + INCHES_PER_TOKEN * len(tokens) for tokens in (target, source))
    with matplotlib.style.context("default"):  # ignore the user's own settings
        figure = Figure(figsize=(columns * width + 1, rows * height), layout="constrained")
        grid = figure.subplots(rows, columns, squeeze=False)
        for axes in grid.flat[len(maps) :]:
            axes.set_axis_off()
        for axes, (title, weights) in zip(grid.flat, maps, strict=False):
            image = draw_map(axes, weights, source, target)
            axes.set_title(title)
        figure.colorbar(image, ax=grid, shrink=0.5).set_label("attention")
        with atomic_path(path) as temporary:
            save(figure, temporary)


def easy_to_read(shapes: Sequence[tuple[int, ...]], count: int) -> list[int]:
    """Return the indices of maps worth drawing, by their shapes (T, S): those with 5 to 25 tokens per side.

    If there are fewer than `count`, all are; except (0, 0), of an empty sentence.
    """
    easy = [i for i, shape in enumerate(shapes) if all(5 <= tokens <= 25 for tokens in shape)]
    return easy if len(easy) >= count else [i for i, shape in enumerate(shapes) if all(shape)]


def draw_map(
    axes: Axes, weights: NDArray[np.floating[Any]], source: Sequence[str], target: Sequence[str]
) -> AxesImage:
    """Draw the beginning of a heat map: source tokens label the rows, target tokens the columns (Fig. 3)."""
    drawn = weights[: len(target), : len(source)].astype(np.float32).T
    image = axes.imshow(drawn, cmap="Greys", vmin=0, vmax=1, aspect="auto")
    # Without parse_math=False, a token like $x^$ would be parsed as a formula, and fail.
    columns, rows = ([make_label(token) for token in tokens] for tokens in (target, source))
    axes.set_xticks(range(len(target)), columns, rotation=90, family=FONT, parse_math=False)
    axes.set_yticks(range(len(source)), rows, family=FONT, parse_math=False)
    axes.xaxis.tick_top()
    axes.xaxis.set_label_position("top")
    axes.set_xlabel("target")
    axes.set_ylabel("source")
    return image


def draw_scores(scores: pd.DataFrame, by_length: pd.DataFrame, path: Path) -> None:
    """Write a PNG with the scores of every model, and chrF by source length, from the tables of both."""
    with matplotlib.style.context("default"):
        figure = Figure(figsize=(11, 4.5), layout="constrained")
        left, right = figure.subplots(1, 2)
        draw_members(left, scores)
        bars = right.bar(by_length["source_words"].tolist(), by_length["chrf"].to_numpy())
        right.bar_label(bars, [f"{n:,}" for n in by_length["sentences"]])
        right.set_title("chrF2 by source length (number of sentences on top)")
        right.set_xlabel("source words")
        right.margins(y=0.1)
        save(figure, path)


def draw_members(axes: Axes, scores: pd.DataFrame) -> None:
    """Draw BLEU and chrF of every model, side by side, plain and with unknown words replaced."""
    texts, names = scores["text"].unique(), {"bleu": "BLEU", "chrf": "chrF2"}
    series = [(text, name) for text in texts for name in names]
    # The mean of a single seed would only repeat it.
    hidden = {"std"} if "std" in set(scores["member"]) else {"std", "mean"}
    members = [str(member) for member in scores["member"].unique() if member not in hidden]
    width = 0.8 / len(series)
    for number, (text, name) in enumerate(series):
        column = scores[scores["text"] == text].set_index("member")[name]
        places = np.arange(len(members)) + (number - (len(series) - 1) / 2) * width
        error = [float(column["std"]) if member == "mean" else 0.0 for member in members]
        label = names[name] + (f", {text}" if len(texts) > 1 else "")
        bars = axes.bar(places, column[members].to_numpy(), width, yerr=error, label=label)
        axes.bar_label(bars, fmt="{:.1f}", fontsize=7)
    axes.set_xticks(range(len(members)), [f"seed {m}" if m.isdigit() else m for m in members])
    axes.set(title="scores of the test set", ylim=(0, None))
    axes.margins(y=0.1)
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.08), ncols=len(series), fontsize="small")


def make_label(token: str) -> str:
    """Return a token as a label: shortened if too long, and only with characters that the font can show."""
    label = "".join(character if has_glyph(character) else MISSING for character in token)
    return label if len(label) <= LONGEST_LABEL else label[: LONGEST_LABEL - 1] + "…"


@cache
def has_glyph(character: str) -> bool:
    """Return whether the pictures' font can show a character."""
    return character.isprintable() and get_font(findfont(FONT)).get_char_index(ord(character)) != 0


def save(figure: Figure, path: Path) -> None:
    """Write a figure as PNG, without matplotlib's version, which would change the file's hash."""
    figure.savefig(path, format="png", dpi=100, metadata={"Software": None})


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
