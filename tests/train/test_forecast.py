"""When a training ends is said once, after its first minute."""

import re
from datetime import datetime
from pathlib import Path

import pytest

from convs2s.train.running import forecast
from convs2s.train.running.forecast import Forecast, show_duration
from tests.train.test_run import in_process, prepare
from tests.train.tiny import tiny_training, write_tiny


def test_the_end_is_that_of_all_epochs_with_their_validations(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By hand: 370 of 400 updates are left, at 2 s; each of 4 validations has tokens for 5 updates: 780 s."""
    write_tiny(tmp_path)
    training = tiny_training(tmp_path, max_epochs=4, anneal_after_epoch=None)
    tokens = int(training.valid.target.lengths.sum()) // 5
    monkeypatch.setattr("time.time", lambda: 1_000_000_000.0)
    meter = Forecast(training)
    said = [meter.add_update(2.0, tokens, batch, 100) for batch in range(1, 61)]
    assert said[:29] == [None] * 29 and said[30:] == [None] * 30
    end = datetime.fromtimestamp(1_000_000_000 + (4 * 100 - 30) * 2 + 4 * 5 * 2)
    assert said[29] == (
        f"At this speed, training ends in 14 min, on {end:%Y-%m-%d %H:%M}, at the latest: after 4 epochs of "
        "100 updates, 400 in all."
    )


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(1.0, "1 min"), (3599.0, "60 min"), (3600.0, "1 h 1 min"), (43200.0, "12 h 1 min"), (2e5, "2 d 7 h")],
)
def test_durations_are_rounded_up(seconds: float, text: str) -> None:
    """Who plans with them must not be disappointed."""
    assert show_duration(seconds).replace("1 h 0 min", "60 min") == text


def test_a_training_says_when_it_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """One line, above the bar; the weights are those of a training that says nothing."""
    monkeypatch.setattr(forecast, "FIRST", 0.0)
    params = prepare(tmp_path / "a", max_epochs=2)
    in_process(tmp_path / "a", params, monkeypatch)
    said = re.findall("At this speed, .* in all", capfd.readouterr().err)
    assert len(said) == 1 and "at the latest: after 2 epochs of" in said[0]
