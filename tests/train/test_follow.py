"""The first signal to end is only recorded; a second Ctrl-C interrupts."""

import signal
import threading

import pytest

from convs2s.train.running.follow import defer_signals


def test_the_second_ctrl_c_interrupts(in_foreground: None, capsys: pytest.CaptureFixture[str]) -> None:
    """This is for users who do not want to wait for the update to finish."""
    signals = list[int]()
    with pytest.raises(KeyboardInterrupt), defer_signals(signals):
        signal.raise_signal(signal.SIGINT)
        assert signals == [signal.SIGINT]
        signal.raise_signal(signal.SIGINT)
    assert capsys.readouterr().err.count("Ctrl-C again to stop at once") == 1
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_second_sigterm_does_not_interrupt(capsys: pytest.CaptureFixture[str]) -> None:
    """The guard of a flow and torchrun both send one to a worker that is saving."""
    before = signal.getsignal(signal.SIGTERM)
    signals = list[int]()
    with defer_signals(signals):
        for number in (signal.SIGTERM, signal.SIGTERM, signal.SIGUSR1):
            signal.raise_signal(number)
    assert signals == [signal.SIGTERM, signal.SIGTERM, signal.SIGUSR1]
    assert capsys.readouterr().err == "SIGTERM: finishing and saving this update.\n"
    assert signal.getsignal(signal.SIGTERM) is before


def test_what_a_program_does_at_ctrl_c_is_left_alone(in_foreground: None) -> None:
    """Examples are a notebook, a shell's background programs, and threads, which cannot handle signals."""
    before = signal.getsignal(signal.SIGINT)
    seen = list[object]()

    def enter() -> None:
        with defer_signals([]):
            seen.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=enter)
    thread.start()
    thread.join()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    enter()
    assert seen == [before, signal.SIG_IGN]
