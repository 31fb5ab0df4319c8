"""Progress bars on terminals and in logs."""

import sys

import pytest

from convs2s.text.progress_bar import progress_bar


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
    for _ in progress_bar(range(400), desc="work"):
        seconds += 0.5
    assert fewest <= capsys.readouterr().err.count("work:") <= most
