"""The first Ctrl-C is only recorded; the second interrupts."""

import signal
import threading

import pytest

from convs2s.train.interruption import deferred_interrupt


def test_the_second_time_interrupts(in_foreground: None, capsys: pytest.CaptureFixture[str]) -> None:
    """This is for users who do not want to wait for the update to finish."""
    with pytest.raises(KeyboardInterrupt), deferred_interrupt() as interrupted:
        assert not interrupted()
        signal.raise_signal(signal.SIGINT)
        assert interrupted()
        signal.raise_signal(signal.SIGINT)
    assert capsys.readouterr().err.count("Ctrl-C again to stop at once") == 1
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_what_a_program_does_at_ctrl_c_is_left_alone() -> None:
    """Examples are a notebook, and a shell that ignores it for background programs."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with deferred_interrupt() as interrupted:
            signal.raise_signal(signal.SIGINT)
            assert not interrupted()
    finally:
        signal.signal(signal.SIGINT, before)


def test_another_thread_defers_nothing() -> None:
    """Python lets only the main thread handle signals."""
    seen: list[bool] = []

    def enter() -> None:
        with deferred_interrupt() as interrupted:
            seen.append(interrupted())

    thread = threading.Thread(target=enter)
    thread.start()
    thread.join()
    assert seen == [False]
