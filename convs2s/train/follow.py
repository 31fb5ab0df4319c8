"""Follow a training: show its progress, save checkpoints, end after Ctrl-C and other signals."""

import contextlib
import signal
import sys
import threading
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import FrameType

from convs2s.config.train import RunSection
from convs2s.train.loop import EpochReport, UpdateReport
from convs2s.train.place import Place
from convs2s.train.training import Training
from convs2s.train.work_folder import WorkFolder
from convs2s.watch.cost import Meter
from convs2s.watch.training import Curves, Progress

ENDING = (signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1)  # Slurm sends the last one before a job's time limit


def follow(
    training: Training,
    reports: Iterable[UpdateReport | EpochReport],
    run: RunSection,
    folder: WorkFolder,
    place: Place | None,
    meter: Meter,
    events: Path | None,
) -> None:
    """Train to the end; show progress, write curves and checkpoints to the work folder.

    Args:
        reports: of the training.
        place: gets copies of the checkpoints.
        events: folder for event files of TensorBoard; None for none.

    Raises:
        KeyboardInterrupt, SystemExit: after the update or epoch in which a signal to end came, once it is
            saved and copied; with several workers, after an update.
        OSError: if a checkpoint cannot be saved.
    """
    state = training.state
    curves = Curves(folder.work / "curves", state.curve, state.epochs, events)
    perplexity = state.perplexities[-1] if state.epochs else None
    progress = Progress(folder.work / "progress.json", training.annealing.max_epochs, perplexity)
    saved, limit = time.monotonic(), 60.0 * (run.checkpoint_minutes or float("inf"))
    with defer_signals(training.signals):
        for report, seconds in time_reports(reports):
            if isinstance(report, UpdateReport):
                meter.count(report.target_tokens, seconds)
                progress.add_update(vars(report), seconds)
                if state.curve and state.curve[-1]["update"] == report.update:
                    curves.add_point(state.curve[-1])
                is_due = report.update % run.checkpoint_updates == 0 or time.monotonic() - saved >= limit
                if not (is_due or is_last(report, training)):
                    continue
            else:
                progress.add_epoch(report.record, report.is_best, seconds)
                curves.add_epoch(report.record)
            meter.save(state.updates, folder.list_kept(training))
            folder.save(training)
            saved = time.monotonic()
            if place:
                place.copy(folder.list_files(state.updates), wait=is_last(report, training))
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
