"""Ctrl-C during a training: the present update is finished and saved before the training ends."""

import contextlib
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from types import FrameType


@contextlib.contextmanager
def deferred_interrupt() -> Iterator[Callable[[], bool]]:
    """Defer the first Ctrl-C; yield a function that returns whether it was pressed. A second one interrupts.

    Nothing is deferred outside the main thread, or where the program handles Ctrl-C in a way of its own.
    """
    pressed = threading.Event()

    def note(number: int, frame: FrameType | None) -> None:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        pressed.set()
        print(
            "Interrupted: the update is finished and saved first; Ctrl-C again ends at once.", file=sys.stderr
        )

    plain = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if not plain or threading.current_thread() is not threading.main_thread():
        yield pressed.is_set
        return
    signal.signal(signal.SIGINT, note)
    try:
        yield pressed.is_set
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
