"""Progress bars on terminals and in logs."""

import sys

import pytest

from convs2s.watch.progress_bar import ProgressBar


@pytest.mark.parametrize(("terminal", "fewest", "most"), [(True, 50, 500), (False, 4, 14)])
def test_a_log_gets_fewer_lines_than_a_terminal(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    terminal: bool,
    fewest: int,
    most: int,
) -> None:
    """Over 200 seconds, a bar every half second would bury everything else in the log."""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: terminal)
    seconds = 0.0
    monkeypatch.setattr("tqdm.std.time", lambda: seconds)
    with ProgressBar(desc="work", total=400) as bar:
        for _ in range(400):
            seconds += 0.5
            bar.advance()
    assert fewest <= capsys.readouterr().err.count("work:") <= most
