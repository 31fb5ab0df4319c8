"""Follow a training: show its progress, save checkpoints, end after Ctrl-C and other signals."""

import contextlib
import signal
import sys
import threading
import time
from collections.abc import Iterable, Iterator
from types import FrameType

from convs2s.config.train import RunSection
from convs2s.train.cost import Meter
from convs2s.train.curves import Events
from convs2s.train.loop import EpochReport, UpdateReport
from convs2s.train.place import Place
from convs2s.train.training import Training
from convs2s.train.work_folder import WorkFolder
from convs2s.watch.training import Progress

ENDING = (signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1)  # Slurm sends the last one before a job's time limit


def follow(
    training: Training,
    reports: Iterable[UpdateReport | EpochReport],
    run: RunSection,
    folder: WorkFolder,
    place: Place | None,
) -> None:
    """Train to the end; show progress, count the cost, write checkpoints to the work folder.

    Args:
        reports: of the training.
        place: gets copies of the checkpoints.

    Raises:
        KeyboardInterrupt, SystemExit: after the update or epoch in which a signal to end came, once it is
            saved and copied; with several workers, after an update.
        OSError: if a checkpoint cannot be saved.
        ValueError: if event files are wanted, but the package tensorboard is not installed.
    """
    state, progress = training.state, Progress()
    meter = Meter(state.sessions, training.workers.hardware() | {"precision": state.precision})
    events = Events(folder.events) if run.tensorboard else None
    if events:
        events.add(state.curve, state.epochs)
    saved, limit = time.monotonic(), 60.0 * (run.checkpoint_minutes or float("inf"))
    with defer_signals(training.signals):
        for report, seconds in time_reports(reports):
            if isinstance(report, UpdateReport):
                meter.count(seconds, report.target_tokens)
                progress.add_update(vars(report), seconds)
                if events and state.curve and state.curve[-1]["update"] == report.update:
                    events.add([state.curve[-1]], [])
                is_due = report.update % run.checkpoint_updates == 0 or time.monotonic() - saved >= limit
                if not (is_due or is_last(report, training)):
                    continue
            else:
                meter.count()
                progress.add_epoch(report.record, report.is_best, seconds)
                if events:
                    events.add([], [report.record])
            folder.save(training)
            saved = time.monotonic()
            if place:
                place.copy([folder.checkpoint(updates) for updates in folder.list_saved()])
            end_after(report, training)


def is_last(report: UpdateReport | EpochReport, training: Training) -> bool:
    """Return whether a signal ends training after this report; all workers agree."""
    if training.workers.count == 1:
        return bool(training.signals)
    return isinstance(report, UpdateReport) and report.is_last


def end_after(report: UpdateReport | EpochReport, training: Training) -> None:
    """End training after this report if a signal asks for it, once the writer has saved.

    Raises:
        KeyboardInterrupt: after Ctrl-C, or if another worker got the signal.
        SystemExit: after another signal, with the exit status that shells give it.
    """
    if is_last(report, training):
        training.workers.barrier()
        number = (training.signals or [signal.SIGINT])[0]
        raise KeyboardInterrupt if number == signal.SIGINT else SystemExit(128 + number)


def time_reports(
    reports: Iterable[UpdateReport | EpochReport],
) -> Iterator[tuple[UpdateReport | EpochReport, float]]:
    """Yield each report of a training with the seconds spent on it, without the caller's own work between."""
    begin = time.perf_counter()
    for report in reports:
        yield report, time.perf_counter() - begin
        begin = time.perf_counter()


@contextlib.contextmanager
def defer_signals(signals: list[int]) -> Iterator[None]:
    """Only note SIGTERM, SIGHUP, SIGUSR1 and the first Ctrl-C, by their numbers; a second Ctrl-C interrupts.

    Nothing is deferred outside the main thread. A signal that is ignored remains so, and Ctrl-C is left alone
    if the program has its own handler for it.
    """

    def note(number: int, frame: FrameType | None) -> None:
        if not signals:
            again = "; press Ctrl-C again to stop at once" if number == signal.SIGINT else ""
            name = "Interrupted" if number == signal.SIGINT else signal.Signals(number).name
            with contextlib.suppress(OSError):  # the terminal may be closed
                print(f"{name}: finishing and saving this update{again}.", file=sys.stderr)
        signals.append(number)
        if number == signal.SIGINT:
            signal.signal(number, signal.default_int_handler)

    replaced = {}
    for number in (signal.SIGINT, *ENDING):
        handler = signal.getsignal(number)
        ours = handler is signal.default_int_handler or (number in ENDING and handler != signal.SIG_IGN)
        if ours and threading.current_thread() is threading.main_thread():
            replaced[number] = signal.signal(number, note)
    try:
        yield
    finally:
        for number, handler in replaced.items():
            signal.signal(number, handler)
