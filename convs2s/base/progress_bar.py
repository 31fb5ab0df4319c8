"""Progress bars that update often on a terminal but do not flood a log; those of a training."""

import sys
from collections.abc import Mapping
from typing import Any

from tqdm import tqdm

Numbers = Mapping[str, float | int | None]

BAR = "{desc}: {percentage:3.0f}%|{bar}| {n_fmt}/{total_fmt} [{elapsed}<{remaining}{postfix}]"
"""tqdm's format without updates/s, to fit in 80 columns."""

SECONDS_ON_TERMINAL, SECONDS_IN_LOG = 0.5, 20.0


class ProgressBar(tqdm):  # type: ignore[misc]  # untyped
    """A bar on stderr; in a log, it is printed every 20 seconds."""

    def __init__(self, **settings: Any) -> None:
        seconds = SECONDS_ON_TERMINAL if sys.stderr.isatty() else SECONDS_IN_LOG
        # After maxinterval, by default 10 seconds, a tqdm thread prints the bar in any case.
        super().__init__(mininterval=seconds, maxinterval=max(seconds, 10.0), **settings)


class Progress:
    """A bar per epoch on stderr, and a line at its end.

    Tokens are target tokens; seconds are those spent on updates, without validation and checkpoints.
    """

    def __init__(self) -> None:
        self._begin_epoch()

    def _begin_epoch(self) -> None:
        self.bar: ProgressBar | None = None
        self.tokens, self.seconds = 0.0, 0.0

    def add_update(self, report: Numbers, seconds: float) -> None:
        """Advance by an update, given the fields of its report, which took `seconds`."""
        batch = int(report["batch"] or 0)
        batches = int(report["batches"] or 0)
        if self.bar is None:
            description = f"epoch {report['epoch']}"
            self.bar = ProgressBar(total=batches, initial=batch - 1, desc=description, bar_format=BAR)
        self.tokens += report["target_tokens"] or 0
        self.seconds += seconds
        # More would leave no room for the bar; the rest is in the curves.
        note = f"loss {report['loss']:.3f}, {self.tokens / self.seconds:,.0f} tokens/s"
        self.bar.set_postfix_str(note, refresh=False)
        self.bar.update()

    def say(self, text: str) -> None:
        """Print a line above the bar, which the next update draws again."""
        if self.bar is not None:
            self.bar.clear()
        print(text, file=sys.stderr)

    def add_epoch(self, record: Numbers, is_best: bool, seconds: float) -> None:
        """Close the bar and print a summary of the epoch, whose validation took `seconds`."""
        speed = entries = ""
        # Training that resumes after the last update of an epoch has no update of that epoch to report.
        if self.bar is not None:
            self.bar.close()
            speed = f", {self.tokens / self.seconds:,.0f} target tokens/s"
        if "selected_entries" in record:
            entries = f"{record['selected_entries']:,.0f} vocabulary entries selected, "
        print(
            f"epoch {record['epoch']:.0f}: {record['updates']:,.0f} updates, learning rate "
            f"{record['learning_rate']:g}, training loss {record['training_loss']:.3f}, validation "
            f"perplexity {record['validation_perplexity']:.3f}{' (best)' if is_best else ''}, "
            f"{entries}training {self.seconds:.1f} s{speed}, validation {seconds:.1f} s",
            file=sys.stderr,
        )
        self._begin_epoch()
