"""Follow a training: show its progress, save checkpoints, end after Ctrl-C and other signals."""

import contextlib
import math
import signal
import sys
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from types import FrameType
from typing import NoReturn

from convs2s.base.progress_bar import Progress
from convs2s.config.train import RunSection
from convs2s.train.loop import EpochReport, UpdateReport
from convs2s.train.running.checkpoint_copies import CheckpointCopies
from convs2s.train.running.checkpoint_writer import CheckpointWriter
from convs2s.train.running.curves import Events
from convs2s.train.running.forecast import Forecast
from convs2s.train.running.free_cores import ThreadsByCores
from convs2s.train.running.work_folder import WorkFolder
from convs2s.train.training import Session, Training

ENDING = (signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1)  # Slurm sends the last one before a job's time limit


def train_to_end(
    training: Training,
    reports: Iterable[UpdateReport | EpochReport],
    run: RunSection,
    folder: WorkFolder,
    copies: CheckpointCopies | None,
) -> None:
    """Train to the end; show progress, count the cost, save checkpoints, and copies of them."""
    state = training.state
    progress = Progress()
    forecast = Forecast(training)
    session: Session = {
        **training.workers.hardware(),
        "processes": training.workers.count,
        "precision": state.precision,
        "seconds": 0.0,
        "training_seconds": 0.0,
        "target_tokens": 0,
    }
    state.sessions.append(session)
    events = Events(folder.events) if run.tensorboard else None
    if events:
        events.add(state.curve, state.epochs)
    start = begin = time.perf_counter()
    saved = time.monotonic()
    limit = math.inf if run.checkpoint_minutes is None else 60.0 * run.checkpoint_minutes
    on_gpu = training.workers.device.type != "cpu"
    with (
        defer_signals(training.signals),
        CheckpointWriter(folder, copies, in_thread=on_gpu) as writer,
        ThreadsByCores(training) as threads,
    ):
        for report in reports:
            writer.check()
            seconds = time.perf_counter() - begin  # of training or validation, without what is done here
            session["seconds"] = time.perf_counter() - start
            if isinstance(report, UpdateReport):
                session["training_seconds"] += seconds
                session["target_tokens"] += report.target_tokens
                progress.add_update(vars(report), seconds)
                if said := forecast.add_update(seconds, report.target_tokens, report.batch, report.batches):
                    progress.say(said)
                if events and state.curve and state.curve[-1]["update"] == report.update:
                    events.add([state.curve[-1]], [])
                if not is_last(report, training) and (said := threads.follow()):
                    progress.say(said)
                is_due = report.update % run.checkpoint_updates == 0 or time.monotonic() - saved >= limit
            else:
                progress.add_epoch(report.record, report.is_best, seconds)
                if events:
                    events.add([], [report.record])
                is_due = True
            if is_due or is_last(report, training):
                writer.save(training, is_last=is_last(report, training))
                saved = time.monotonic()
                if is_last(report, training):
                    writer.wait()
                    end_after(report, training)
            begin = time.perf_counter()


def is_last(report: UpdateReport | EpochReport, training: Training) -> bool:
    """Return whether a signal ends training after this report; all workers agree."""
    if training.workers.count == 1:
        return bool(training.signals)
    return isinstance(report, UpdateReport) and report.is_last


def end_after(report: UpdateReport | EpochReport, training: Training) -> None:
    """End training after this report if a signal asks for it, once the writer has saved."""
    if is_last(report, training):
        training.workers.barrier()
        end_by_signal(training.signals)


def end_by_signal(signals: Sequence[int]) -> NoReturn:
    """End as the first of the signals would end the process, with the exit status that shells show then.

    A worker that got no signal itself, because another did, ends as after Ctrl-C.
    """
    number = signals[0] if signals else signal.SIGINT
    if number == signal.SIGINT:
        raise KeyboardInterrupt
    raise SystemExit(128 + number)


@contextlib.contextmanager
def defer_signals(signals: list[int]) -> Iterator[None]:
    """Only note SIGTERM, SIGHUP, SIGUSR1 and the first Ctrl-C, by their numbers; a second Ctrl-C interrupts.

    Nothing is deferred outside the main thread. A signal that is ignored remains so, and Ctrl-C is left alone
    if the program has its own handler for it.
    """

    def note(number: int, frame: FrameType | None) -> None:
        """Note a signal; say so if it is the first; after Ctrl-C, let the next one interrupt."""
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
