"""Pictures of results: attention heat maps as in Fig. 3, and scores; byte-identical on every run."""

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import matplotlib
import matplotlib.style
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.font_manager import findfont, get_font
from numpy.typing import NDArray

FONT = "DejaVu Sans"  # comes with matplotlib, so pictures are the same everywhere
MISSING = "\N{WHITE SQUARE}"
LONGEST_LABEL = 20  # characters
LARGEST_MAP = 60  # tokens per side; beyond that, a picture is unreadable


def draw_attention(
    weights: NDArray[np.floating[Any]], source: Sequence[str], target: Sequence[str], title: str, path: Path
) -> None:
    """Write a PNG of attention weights: source on the y axis, target on the x axis, as in Fig. 3.

    Of sentences longer than 60 tokens, only the first 60 tokens are drawn.

    Args:
        weights: (T, S), row t is the distribution of target token t over the source; 0 to 1.
        source: S tokens.
        target: T tokens.
        title: shown above the map.
        path: file to write.

    Raises:
        ValueError: if the weights' shape is not that of the tokens.
    """
    if weights.shape != (len(target), len(source)):
        raise ValueError(
            f"attention for {path.name} has shape {weights.shape}; wanted {(len(target), len(source))}: "
            "a row per target token, a column per source token. Translate again: dvc repro --force translate"
        )
    weights, source, target = weights[:LARGEST_MAP, :LARGEST_MAP], source[:LARGEST_MAP], target[:LARGEST_MAP]
    with matplotlib.style.context("default"):  # ignore the user's own settings
        figure = Figure(figsize=(2 + 0.28 * len(target), 2 + 0.28 * len(source)), layout="constrained")
        axes = figure.add_subplot()
        image = axes.imshow(weights.astype(np.float32).T, cmap="Greys", vmin=0, vmax=1, aspect="auto")
        label_tokens(axes, source, target)
        figure.suptitle(title, fontsize="medium", parse_math=False)
        bar = figure.colorbar(image, ax=axes, shrink=0.8)
        bar.set_label("attention")
        save(figure, path)


def easy_to_read(shapes: Sequence[tuple[int, ...]], count: int) -> list[int]:
    """Return the indices of maps worth drawing: 5 to 25 tokens per side, or any if there are too few.

    Args:
        shapes: (T, S) of each sentence's attention; (0, 0) for an empty sentence, which is never drawn.
        count: number of maps needed.
    """
    easy = [i for i, shape in enumerate(shapes) if all(5 <= tokens <= 25 for tokens in shape)]
    return easy if len(easy) >= count else [i for i, shape in enumerate(shapes) if all(shape)]


def label_tokens(axes: Axes, source: Sequence[str], target: Sequence[str]) -> None:
    """Label the rows of a heat map with source tokens and the columns with target tokens, as in Fig. 3."""
    # Without parse_math=False, a token like $x^$ would be parsed as a formula, and fail.
    axes.set_xticks(
        range(len(target)), [drawable(t) for t in target], rotation=90, family=FONT, parse_math=False
    )
    axes.set_yticks(range(len(source)), [drawable(t) for t in source], family=FONT, parse_math=False)
    axes.xaxis.tick_top()
    axes.xaxis.set_label_position("top")
    axes.set_xlabel("target")
    axes.set_ylabel("source")


def draw_scores(scores: pd.DataFrame, by_length: pd.DataFrame, path: Path) -> None:
    """Write a PNG with the scores of every model, and chrF by source length.

    Args:
        scores: as returned by `tables.score_table`; its row `std` gives the error bar of `mean`.
        by_length: as returned by `tables.length_table`.
        path: file to write.
    """
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


def drawable(token: str) -> str:
    """Return a token as a label: shortened if too long, and only with characters that the font can show."""
    shown = "".join(character if has_glyph(character) else MISSING for character in token)
    return shown if len(shown) <= LONGEST_LABEL else shown[: LONGEST_LABEL - 1] + "…"


@cache
def has_glyph(character: str) -> bool:
    """Return whether the pictures' font can show a character."""
    return character.isprintable() and get_font(findfont(FONT)).get_char_index(ord(character)) != 0


def save(figure: Figure, path: Path) -> None:
    """Write a figure as PNG, without matplotlib's version, which would change the file's hash."""
    canvas = FigureCanvasAgg(figure)
    figure.set_dpi(100)
    # Figure.savefig would draw everything once more, only to lay it out.
    if (layout := figure.get_layout_engine()) is not None:
        layout.execute(figure)
        figure.set_layout_engine("none")
    canvas.print_png(path, metadata={"Software": None})  # type: ignore[no-untyped-call]
