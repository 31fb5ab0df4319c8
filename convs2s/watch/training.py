"""Progress of a training: a bar and a line per epoch for people, files for programs and pictures."""

import json
import shutil
import sys
import time
from collections.abc import Iterable, Mapping
from pathlib import Path

from convs2s.watch.progress_bar import ProgressBar

Numbers = Mapping[str, float | int | None]

SECONDS_BETWEEN_FILES = 1.0
BAR = "{desc}: {percentage:3.0f}%|{bar}| {n_fmt}/{total_fmt} [{elapsed}<{remaining}{postfix}]"
"""tqdm's format without updates/s, to fit in 80 columns."""


class Progress:
    """A bar per epoch on stderr, a line at its end, and the same figures in a JSON file.

    The file is written at most once a second and at the end of each epoch. Tokens are target tokens; seconds
    are those spent on updates, without validation and checkpoints. The time left is estimated from the second
    update on: the first may compile code, and take as long as hundreds of others.
    """

    def __init__(self, path: Path, max_epochs: int, perplexity: float | None) -> None:
        """Start with the validation perplexity of the last epoch, or None if there is none."""
        self.path, self.max_epochs, self.perplexity = path, max_epochs, perplexity
        self.next_file = time.monotonic()
        self._begin_epoch()

    def _begin_epoch(self) -> None:
        self.bar: ProgressBar | None = None
        self.last: Numbers | None = None
        self.tokens, self.seconds, self.updates = 0.0, 0.0, 0

    def add_update(self, report: Numbers, seconds: float) -> None:
        """Advance by an update, which took `seconds`.

        Args:
            report: the fields of an `UpdateReport`.
        """
        batch, batches = int(report["batch"] or 0), int(report["batches"] or 0)
        if self.bar is None:
            description = f"epoch {report['epoch']}"
            self.bar = ProgressBar(total=batches, initial=batch - 1, desc=description, bar_format=BAR)
            self.first = seconds
        self.last = report
        self.tokens += report["target_tokens"] or 0
        self.seconds += seconds
        self.updates += 1
        # More would leave no room for the bar; the rest is in the curves and the file.
        self.bar.advance(note=f"loss {report['loss']:.3f}, {self.tokens / self.seconds:,.0f} tokens/s")
        if self.updates > 1 and time.monotonic() >= self.next_file:
            self.next_file = time.monotonic() + SECONDS_BETWEEN_FILES
            self._write(report, (batches - batch) * (self.seconds - self.first) / (self.updates - 1))

    def add_epoch(self, record: Numbers, is_best: bool, seconds: float) -> None:
        """Close the bar and print a summary of the epoch, whose validation took `seconds`."""
        self.perplexity = record["validation_perplexity"]
        speed = entries = ""
        if self.bar is not None:
            self.bar.close()
        # Training that resumes after the last update of an epoch has no update of that epoch to report.
        if self.last is not None:
            speed = f", {self.tokens / self.seconds:,.0f} target tokens/s"
            self._write(self.last, 0.0)
        if "selected_entries" in record:
            entries = f"{record['selected_entries']:,.0f} vocabulary entries selected, "
        print(
            f"epoch {record['epoch']:.0f}: {record['updates']:,.0f} updates, learning rate "
            f"{record['learning_rate']:g}, training loss {record['training_loss']:.3f}, validation "
            f"perplexity {self.perplexity:.3f}{' (best)' if is_best else ''}, "
            f"{entries}training {self.seconds:.1f} s{speed}, validation {seconds:.1f} s",
            file=sys.stderr,
        )
        self._begin_epoch()

    def _write(self, report: Numbers, seconds_left: float) -> None:
        content = {
            "epoch": report["epoch"],
            "max_epochs": self.max_epochs,
            "update": report["batch"],
            "updates": report["batches"],
            "loss": report["loss"],
            "gradient_norm": report["gradient_norm"],
            "learning_rate": report["learning_rate"],
            "tokens_per_second": self.tokens / self.seconds,
            "seconds_left": seconds_left,
            "validation_perplexity": self.perplexity,
        }
        partial = self.path.with_name(f".{self.path.name}.part")
        partial.write_text(json.dumps(content) + "\n", encoding="utf-8")
        partial.replace(self.path)  # who reads it never sees half a file


class Curves:
    """Tables train/{loss,gradient_norm,learning_rate}.tsv and valid/perplexity.tsv: one line per point.

    Their columns are `step`, in updates, and a value.
    """

    def __init__(
        self, folder: Path, points: Iterable[Numbers], epochs: Iterable[Numbers], events: Path | None = None
    ) -> None:
        """Begin with the points and epochs of the checkpoint that training resumes from.

        Args:
            folder: for the tables.
            events: folder for the same curves as event files of TensorBoard; None for none.

        Raises:
            ValueError: if event files are wanted, but the package tensorboard is not installed.
        """
        self.folder, self.events = folder, None
        if events is not None:
            try:
                from torch.utils.tensorboard import SummaryWriter  # noqa: PLC0415  # takes seconds
            except ImportError as error:
                raise ValueError(
                    "run.tensorboard: expected the package tensorboard, found none. Run: pip install "
                    "'convs2s[tensorboard]', or set run.tensorboard to false."
                ) from error
            shutil.rmtree(events, ignore_errors=True)
            self.events = SummaryWriter(str(events), flush_secs=5)
        shutil.rmtree(folder, ignore_errors=True)
        for point in points:
            self.add_point(point)
        for record in epochs:
            self.add_epoch(record)

    def add_point(self, point: Numbers) -> None:
        """Add a point of the training curve."""
        for name in ("loss", "gradient_norm", "learning_rate"):
            self._add(f"train/{name}", point["update"], point[name])

    def add_epoch(self, record: Numbers) -> None:
        """Add a point of the validation curve."""
        self._add("valid/perplexity", record["updates"], record["validation_perplexity"])
        if self.events is not None:
            self.events.flush()  # after the last epoch, nothing else would

    def _add(self, name: str, step: float | None, value: float | None) -> None:
        path = self.folder / f"{name}.tsv"
        path.parent.mkdir(parents=True, exist_ok=True)
        header = "" if path.exists() else f"step\t{path.stem}\n"
        with path.open("a", encoding="utf-8", newline="\n") as stream:
            stream.write(f"{header}{step:.0f}\t{value}\n")
        if self.events is not None:
            self.events.add_scalar(name, value, int(step or 0))
