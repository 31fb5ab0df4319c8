"""The first Ctrl-C is only recorded, the second interrupts."""

import signal
import threading
from collections.abc import Iterator

import pytest

from convs2s.train.follow import deferred_interrupt, time_reports
from convs2s.train.loop import EpochReport


def test_the_second_time_interrupts(in_foreground: None, capsys: pytest.CaptureFixture[str]) -> None:
    """This is for users who do not want to wait for the update to finish."""
    with pytest.raises(KeyboardInterrupt), deferred_interrupt(True) as is_interrupted:
        assert not is_interrupted()
        signal.raise_signal(signal.SIGINT)
        assert is_interrupted()
        signal.raise_signal(signal.SIGINT)
    assert capsys.readouterr().err.count("Ctrl-C again to stop at once") == 1
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_what_a_program_does_at_ctrl_c_is_left_alone(in_foreground: None) -> None:
    """Examples are a notebook, a shell's background programs, and threads, which cannot handle signals."""
    before, seen = signal.getsignal(signal.SIGINT), list[object]()

    def enter() -> None:
        with deferred_interrupt(True):
            seen.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=enter)
    thread.start()
    thread.join()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    enter()
    assert seen == [before, signal.SIG_IGN]


def test_only_the_time_until_a_report_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Saving checkpoints and drawing the progress bar between reports do not count."""
    clock = [100.0]
    monkeypatch.setattr("time.perf_counter", lambda: clock[0])
    made = EpochReport({}, is_best=True)

    def reports() -> Iterator[EpochReport]:
        for seconds in (2.0, 40.0):
            clock[0] += seconds
            yield made

    found = []
    for _, seconds in time_reports(reports()):
        found.append(seconds)
        clock[0] += 500.0
    assert found == [2.0, 40.0]
