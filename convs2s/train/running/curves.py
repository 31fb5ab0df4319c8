"""The curves of a training: tables once it has ended, and event files of TensorBoard as it goes on."""

import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path

from convs2s.base.files import atomic_path, write_lines
from convs2s.train.training import Record


class Events:
    """The curves as event files of TensorBoard, in a folder that is emptied first."""

    def __init__(self, folder: Path) -> None:
        try:
            from torch.utils.tensorboard import SummaryWriter  # noqa: PLC0415  # takes seconds
        except ImportError as error:
            raise ValueError(
                "run.tensorboard: expected the package tensorboard, found none. Run: pip install "
                "'convs2s[tensorboard]', or set run.tensorboard to false."
            ) from error
        shutil.rmtree(folder, ignore_errors=True)
        self.writer = SummaryWriter(str(folder))

    def add(self, points: Iterable[Record], epochs: Iterable[Record]) -> None:
        """Add points of a training's state."""
        for name, updates, value in list_points(points, epochs):
            self.writer.add_scalar(name, value, updates)
        self.writer.flush()


def write_curves(folder: Path, points: Iterable[Record], epochs: Iterable[Record]) -> None:
    """Write a table of steps (updates) and values for each curve that has any, such as train/loss.tsv."""
    tables: dict[str, list[str]] = {}
    for name, updates, value in list_points(points, epochs):
        tables.setdefault(name, [f"step\t{Path(name).name}"]).append(f"{updates}\t{value}")
    with atomic_path(folder) as temporary:
        for name, lines in tables.items():
            write_lines(temporary / f"{name}.tsv", lines)


def list_points(points: Iterable[Record], epochs: Iterable[Record]) -> Iterator[tuple[str, int, float]]:
    """Yield the curve, the number of updates and the value of each point of a training's state."""
    for point in points:
        for name in ("loss", "gradient_norm", "learning_rate"):
            yield f"train/{name}", int(point["update"]), point[name]
    for record in epochs:
        yield "valid/perplexity", int(record["updates"]), record["validation_perplexity"]
