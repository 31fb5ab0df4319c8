"""Follow a training: show its progress, save checkpoints, stop after Ctrl-C."""

import contextlib
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from types import FrameType

from convs2s.train.loop import EpochReport, UpdateReport
from convs2s.train.training import Training
from convs2s.train.work_folder import WorkFolder
from convs2s.watch.cost import Meter
from convs2s.watch.training import Curves, Progress


def follow(
    training: Training,
    reports: Iterable[UpdateReport | EpochReport],
    checkpoint_updates: int,
    folder: WorkFolder,
    meter: Meter,
    events: Path | None,
) -> None:
    """Train to the end; show progress, write curves and checkpoints to the work folder.

    Args:
        reports: of the training.
        events: folder for event files of TensorBoard; None for none.

    Raises:
        KeyboardInterrupt: after the update or epoch in which Ctrl-C was pressed, once it is saved.
    """
    state = training.state
    curves = Curves(folder.work / "curves", state.curve, state.epochs, events)
    perplexity = state.perplexities[-1] if state.epochs else None
    progress = Progress(folder.work / "progress.json", training.annealing.max_epochs, perplexity)
    # With several workers, the others would not learn why the writer stops.
    with deferred_interrupt(training.workers.count == 1) as is_interrupted:
        for report, seconds in time_reports(reports):
            if isinstance(report, UpdateReport):
                meter.count(report.target_tokens, seconds)
                progress.add_update(vars(report), seconds)
                if state.curve and state.curve[-1]["update"] == report.update:
                    curves.add_point(state.curve[-1])
                if report.update % checkpoint_updates != 0 and not is_interrupted():
                    continue
            else:
                progress.add_epoch(report.record, report.is_best, seconds)
                curves.add_epoch(report.record)
            meter.save(state.updates, folder.list_kept(training))
            folder.save(training)
            if is_interrupted():
                raise KeyboardInterrupt


def time_reports(
    reports: Iterable[UpdateReport | EpochReport],
) -> Iterator[tuple[UpdateReport | EpochReport, float]]:
    """Yield each report of a training with the seconds spent on it, without the caller's own work between."""
    begin = time.perf_counter()
    for report in reports:
        yield report, time.perf_counter() - begin
        begin = time.perf_counter()


@contextlib.contextmanager
def deferred_interrupt(enabled: bool) -> Iterator[Callable[[], bool]]:
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

    in_main_thread = threading.current_thread() is threading.main_thread()
    if not (enabled and in_main_thread and signal.getsignal(signal.SIGINT) is signal.default_int_handler):
        yield pressed.is_set
        return
    signal.signal(signal.SIGINT, note)
    try:
        yield pressed.is_set
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
