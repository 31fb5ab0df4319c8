"""The attention of every decoder layer and their average, side by side (Fig. 3)."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib.style
import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from convs2s.score.pictures import LARGEST_MAP, label_tokens, save
from convs2s.text.corpus.files import atomic_path

INCHES_PER_TOKEN = 0.22
INCHES_OF_LABELS = 1.6


def draw_layers(
    maps: Sequence[tuple[str, NDArray[np.floating[Any]]]],
    source: Sequence[str],
    target: Sequence[str],
    path: Path,
) -> None:
    """Write a PNG with a grid of heat maps as in Fig. 3: source on the y axis, target on the x axis.

    Of sentences longer than 60 tokens, only the first 60 tokens are drawn.

    Args:
        maps: title and weights (T, S) of each; row t is the distribution of target token t over the source.
        source: S tokens.
        target: T tokens.
        path: file to write, atomically.
    """
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
            drawn = weights[:LARGEST_MAP, :LARGEST_MAP].T
            image = axes.imshow(drawn, cmap="Greys", vmin=0, vmax=1, aspect="auto")
            label_tokens(axes, source, target)
            axes.set_title(title)
        figure.colorbar(image, ax=grid, shrink=0.5).set_label("attention")
        with atomic_path(path) as temporary:
            save(figure, temporary)
