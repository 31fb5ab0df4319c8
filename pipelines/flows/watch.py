"""Whether a flow run is still wanted: it asks for itself, for a killed worker passes nothing on."""

import contextlib
import os
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import httpx
from prefect import get_client, runtime
from prefect.settings import PREFECT_API_REQUEST_TIMEOUT, PREFECT_CLIENT_MAX_RETRIES, temporary_settings
from prefect.states import Cancelled, Crashed, Running, State
from rich.console import Console

from pipelines.flows.dvc_stage import StageEnded, WorkerGone

PAUSE = 2.0
"""Seconds between two looks of a thread that only looks."""


@contextlib.contextmanager
def watching() -> Iterator[Callable[[], None]]:
    """Give a function that raises once nobody wants this flow run any more.

    That is WorkerGone when the worker that started it was killed, for no other takes it over, and StageEnded
    when somebody has cancelled or ended it. A run that the server takes for Crashed, since it was away itself
    and has heard no heartbeat, says that it lives.
    """
    worker = os.getppid() if "PREFECT__FLOW_RUN_ID" in os.environ else None
    run = runtime.flow_run.id
    if worker is not None:
        outlive_terminal()

    def look() -> None:
        """Look once."""
        if worker is not None and os.getppid() != worker:
            leave_terminal()
            raise WorkerGone("the worker that had started this run is gone: its stages were ended")
        # A server that is away must not keep us from looking about: ask once, briefly.
        impatient = {PREFECT_CLIENT_MAX_RETRIES: 0, PREFECT_API_REQUEST_TIMEOUT: 5.0}
        try:
            with temporary_settings(impatient), get_client(sync_client=True) as client:
                state = client.read_flow_run(run).state
                if state and state.is_crashed():
                    client.set_flow_run_state(run, Running(), force=True)
                    return
        except (httpx.HTTPError, RuntimeError):
            return  # the stages go on
        if state and (state.is_cancelling() or state.is_final()):
            raise StageEnded(f"the flow run is {state.name} in the eyes of the server: its stages were ended")

    yield look


@contextlib.contextmanager
def stopping_when_unwanted(stop: threading.Event) -> Iterator[list[StageEnded]]:
    """Look about in a thread of its own, and set `stop` when the run is no longer wanted.

    Yields a list that then has the reason.
    """
    reasons: list[StageEnded] = []
    over = threading.Event()
    with watching() as look:

        def watch() -> None:
            """Look until it is over or nobody wants the run."""
            while not over.wait(PAUSE):
                try:
                    look()
                except StageEnded as ended:
                    reasons.append(ended)
                    stop.set()
                    return

        thread = threading.Thread(target=watch, daemon=True)
        thread.start()
        try:
            yield reasons
        finally:
            over.set()
            thread.join()


def outlive_terminal() -> None:
    """Go on when the pipe to the worker breaks.

    Prefect logs through Rich, which ends the process at the first line that it cannot write: before anybody
    could tell the server why, if the worker is killed.
    """

    def go_on(self: Console) -> None:
        leave_terminal()

    Console.on_broken_pipe = go_on  # type: ignore[method-assign]


def leave_terminal() -> None:
    """Write to nowhere from now on: the pipe to a dead worker is broken."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (sys.stdout, sys.stderr):
        os.dup2(nowhere, stream.fileno())


def ended_early(ended: StageEnded, done: str) -> State[Any]:
    """Return the state of a run that did not come to its end, with what it had done."""
    kind = Crashed if isinstance(ended, WorkerGone) else Cancelled
    return kind(message=f"{ended}. {done}. Nothing finished is lost; a new run goes on from there.")
