"""Training curves as tab-separated tables: a column `step`, in updates, and a column of values."""

from pathlib import Path

from convs2s.text.corpus.files import remove
from convs2s.train.training import Record, State


class Curves:
    """Tables train/{loss,gradient_norm,learning_rate}.tsv and valid/perplexity.tsv, one line per point."""

    def __init__(self, folder: Path, state: State) -> None:
        """Begin with the points of the checkpoint that training resumes from."""
        remove(folder)
        self.folder = folder
        for point in state.curve:
            self.add_point(point)
        for record in state.epochs:
            self.add_epoch(record)

    def add_point(self, point: Record) -> None:
        """Add a point of the training curve."""
        for name in ("loss", "gradient_norm", "learning_rate"):
            self._add(f"train/{name}", point["update"], point[name])

    def add_epoch(self, record: Record) -> None:
        """Add a point of the validation curve."""
        self._add("valid/perplexity", record["updates"], record["validation_perplexity"])

    def _add(self, name: str, step: float | int, value: float | int) -> None:
        path = self.folder / f"{name}.tsv"
        path.parent.mkdir(parents=True, exist_ok=True)
        header = "" if path.exists() else f"step\t{path.stem}\n"
        with path.open("a", encoding="utf-8", newline="\n") as stream:
            stream.write(f"{header}{step:.0f}\t{value}\n")
