"""Ctrl-C during training: the current update is finished and saved before training stops."""

import contextlib
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from types import FrameType


@contextlib.contextmanager
def deferred_interrupt() -> Iterator[Callable[[], bool]]:
    """Defer the first Ctrl-C; yield a function that returns whether it was pressed. A second one interrupts.

    Nothing is deferred outside the main thread, or if the program has its own handler for Ctrl-C.
    """
    pressed = threading.Event()

    def note(number: int, frame: FrameType | None) -> None:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        pressed.set()
        print(
            "Interrupted: finishing and saving this update; press Ctrl-C again to stop at once.",
            file=sys.stderr,
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
