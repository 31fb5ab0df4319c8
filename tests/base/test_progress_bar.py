"""What people see of a training while it runs, on terminals and in logs."""

import sys

import pytest

from convs2s.base.progress_bar import Numbers, Progress, ProgressBar
from convs2s.train.loop import UpdateReport

RECORD: Numbers = {
    "epoch": 1, "updates": 2, "learning_rate": 0.25, "training_loss": 3.0, "validation_perplexity": 9.5
}  # fmt: skip
REPORT = UpdateReport(1, 41, 3.0, 0.5, 0.25, 100, 1, 2, None, is_last=False)


@pytest.mark.parametrize(("terminal", "fewest", "most"), [(True, 50, 500), (False, 4, 14)])
def test_a_log_gets_fewer_lines_than_a_terminal(
    terminal: bool,
    fewest: int,
    most: int,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Over 200 seconds, a bar every half second would bury everything else in the log."""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: terminal)
    seconds = 0.0
    monkeypatch.setattr("tqdm.std.time", lambda: seconds)
    with ProgressBar(desc="work", total=400) as bar:
        for _ in range(400):
            seconds += 0.5
            bar.update()
    assert fewest <= capsys.readouterr().err.count("work:") <= most


def test_speed_is_that_of_updates_without_validation(capsys: pytest.CaptureFixture[str]) -> None:
    """Each epoch has its own. One interrupted during validation has no update here, so no speed either."""
    progress = Progress()
    for seconds, expected in ((4.0, "8.0 s, 25 target"), (1.0, "2.0 s, 100 target")):
        for _ in range(2):
            progress.add_update(vars(REPORT), seconds)
        progress.add_epoch(RECORD, False, 50.0)
        assert f"9.500, training {expected} tokens/s, validation 50.0 s\n" in capsys.readouterr().err
    progress.add_epoch({**RECORD, "selected_entries": 1234.4}, True, 50.0)
    expected = "9.500 (best), 1,234 vocabulary entries selected, training 0.0 s, validation 50.0 s\n"
    assert capsys.readouterr().err.endswith(expected)
