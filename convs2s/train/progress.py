"""Show training progress: a bar and a line per epoch for people, a JSON file for programs."""

import json
import sys
import time
from pathlib import Path

from tqdm import tqdm

from convs2s.text.corpus.files import atomic_path
from convs2s.text.counted import counted
from convs2s.text.progress_bar import progress_bar
from convs2s.train.loop import EpochReport, UpdateReport

SECONDS_BETWEEN_FILES = 1.0

BAR = "{desc}: {percentage:3.0f}%|{bar}| {n_fmt}/{total_fmt} [{elapsed}<{remaining}{postfix}]"
"""tqdm's format without updates/s, to fit in 80 columns."""


class Progress:
    """A bar per epoch on stderr, a line at its end, and the same figures in a file.

    Tokens are target tokens; seconds are those spent on updates, without validation and checkpoints.
    """

    def __init__(self, file: "ProgressFile") -> None:
        self.file = file
        self.bar: tqdm | None = None
        self.last: UpdateReport | None = None
        self.tokens, self.seconds, self.updates = 0, 0.0, 0

    def update(self, report: UpdateReport, number: int, seconds: float) -> None:
        """Advance by an update, the `number`-th of its epoch, which took `seconds`."""
        if self.bar is None:
            self.bar = progress_bar(
                total=report.batches,
                initial=number - 1,
                desc=f"epoch {report.epoch}",
                bar_format=BAR,
            )
        self.last = report
        self.tokens += report.target_tokens
        self.seconds += seconds
        self.updates += 1
        speed = self.tokens / self.seconds
        # More would leave no room for the bar; the rest is in the curves and the file.
        self.bar.set_postfix_str(f"loss {report.loss:.3f}, {speed:,.0f} tokens/s", refresh=False)
        self.bar.update()
        seconds_left = (report.batches - number) * self.seconds / self.updates
        self.file.update(report, number, speed, seconds_left)

    def epoch(self, report: EpochReport, seconds: float) -> None:
        """Close the bar and print a summary of the epoch, whose validation took `seconds`."""
        if self.bar is not None:
            self.bar.close()
            self.bar = None
        record = report.record
        speed = ""
        # Training that resumes after the last update of an epoch has no update of that epoch to report.
        if self.last is not None:
            tokens_per_second = self.tokens / self.seconds
            speed = f", {tokens_per_second:,.0f} target tokens/s"
            self.file.epoch(self.last, tokens_per_second, record["validation_perplexity"])
        print(
            f"epoch {record['epoch']:.0f}: {counted(int(record['updates']), 'update')}, learning rate "
            f"{record['learning_rate']:g}, training loss {record['training_loss']:.3f}, validation "
            f"perplexity {record['validation_perplexity']:.3f}{' (best)' if report.is_best else ''}, "
            f"{entries(record.get('selected_types'))}training {self.seconds:.1f} s{speed}, "
            f"validation {seconds:.1f} s",
            file=sys.stderr,
        )
        self.last = None
        self.tokens, self.seconds, self.updates = 0, 0.0, 0


class ProgressFile:
    """Training progress as a JSON object, written at most once a second and at each epoch's end."""

    def __init__(self, path: Path, max_epochs: int, perplexity: float | None) -> None:
        """Start with the validation perplexity of the last epoch, or None if there is none."""
        self.path = path
        self.max_epochs = max_epochs
        self.perplexity = perplexity
        self.next = time.monotonic()

    def update(self, report: UpdateReport, number: int, speed: float, seconds_left: float) -> None:
        """Write the state after an update, unless the file was written less than a second ago."""
        now = time.monotonic()
        if now >= self.next:
            self.next = now + SECONDS_BETWEEN_FILES
            self._write(report, number, speed, seconds_left)

    def epoch(self, last: UpdateReport, speed: float, perplexity: float) -> None:
        """Write the state at the end of an epoch, after its last update."""
        self.perplexity = perplexity
        self._write(last, last.batches, speed, 0.0)

    def _write(self, report: UpdateReport, number: int, speed: float, seconds_left: float) -> None:
        content = {
            "epoch": report.epoch,
            "max_epochs": self.max_epochs,
            "update": number,
            "updates": report.batches,
            "loss": report.loss,
            "gradient_norm": report.gradient_norm,
            "learning_rate": report.learning_rate,
            "tokens_per_second": speed,
            "seconds_left": seconds_left,
            "validation_perplexity": self.perplexity,
        }
        with atomic_path(self.path) as temporary:
            temporary.write_text(json.dumps(content) + "\n", encoding="utf-8")


def entries(selected: float | None) -> str:
    """Return the number of vocabulary entries selected, as part of a line; empty without selection."""
    return "" if selected is None else f"{selected:,.0f} vocabulary entries selected, "
