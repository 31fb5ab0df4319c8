"""What people and programs see of a training while it runs."""

import io
from weakref import WeakSet

import pytest

from convs2s.train.loop import UpdateReport
from convs2s.watch.progress_bar import ProgressBar
from convs2s.watch.training import Numbers, Progress

RECORD: Numbers = {
    "epoch": 1, "updates": 2, "learning_rate": 0.25, "training_loss": 3.0, "validation_perplexity": 9.5
}  # fmt: skip


def report(batch: int, batches: int = 2) -> Numbers:
    return vars(UpdateReport(1, 40 + batch, 3.0, 0.5, 0.25, 100, 8, batch, batches, None, is_last=False))


def test_speed_is_that_of_updates_without_validation(capsys: pytest.CaptureFixture[str]) -> None:
    """Each epoch has its own. One interrupted during validation has no update here, so no speed either."""
    progress = Progress()
    for seconds, expected in ((4.0, "8.0 s, 25 target"), (1.0, "2.0 s, 100 target")):
        for batch in (1, 2):
            progress.add_update(report(batch), seconds)
        progress.add_epoch(RECORD, False, 50.0)
        assert (
            f"perplexity 9.500, training {expected} tokens/s, validation 50.0 s\n" in capsys.readouterr().err
        )
    progress.add_epoch({**RECORD, "selected_entries": 1234.4}, True, 50.0)
    expected = "9.500 (best), 1,234 vocabulary entries selected, training 0.0 s, validation 50.0 s\n"
    assert capsys.readouterr().err.endswith(expected)


def test_the_bar_has_room_in_80_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    """If text filled the line, the bar would have one character and show nothing."""
    terminal = io.StringIO()
    monkeypatch.setattr("sys.stderr", terminal)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("LINES", "24")
    monkeypatch.setattr(ProgressBar, "_instances", WeakSet())  # below another test's bar, it has another line
    progress = Progress()
    progress.add_update({**report(1335, 2670), "epoch": 12, "target_tokens": 12_345}, 1.0)
    progress.add_epoch(RECORD, False, 1.0)
    bar = terminal.getvalue().split("\n", maxsplit=1)[0].split("\r")[-1]
    assert len(bar) < 80
    assert bar.startswith("epoch 12:  50%|")
    assert len(bar.split("|")[1]) >= 10
    assert bar.endswith(", loss 3.000, 12,345 tokens/s]")
