"""Whether a flow run is still wanted: it asks for itself, for a killed worker passes nothing on."""

import os
import sys
from collections.abc import Callable
from typing import Any

import httpx
from prefect import get_client, runtime
from prefect.settings import (
    PREFECT_API_REQUEST_TIMEOUT,
    PREFECT_API_URL,
    PREFECT_CLIENT_MAX_RETRIES,
    temporary_settings,
)
from prefect.states import Cancelled, Crashed, Running, State
from rich.console import Console

from pipelines.flows import access
from pipelines.flows.dvc_stage import StageEnded, WorkerGone


def make_check() -> Callable[[], None]:
    """Return a function that raises once nobody wants this flow run any more.

    That is WorkerGone when the worker that started it was killed, for no other takes it over, and StageEnded
    when somebody has cancelled or ended it. A run that the server takes for Crashed, since it was away itself
    and has heard no heartbeat, is set Running again.
    """
    access.hold(PREFECT_API_URL.value() or "")
    worker = os.getppid() if "PREFECT__FLOW_RUN_ID" in os.environ else None
    run = runtime.flow_run.id
    if worker is not None:
        # Prefect logs through Rich, which ends the process at the first line that it cannot write: if the
        # worker is killed, before anybody could tell the server why.
        Console.on_broken_pipe = lambda self: leave_terminal()  # type: ignore[method-assign]

    def check() -> None:
        if worker is not None and os.getppid() != worker:
            leave_terminal()
            raise WorkerGone("the worker that had started this run is gone: its stages were ended")
        # A server that is away must not keep us from checking on the worker: ask once, briefly.
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
            raise StageEnded(f"the server has the flow run as {state.name}: its stages were ended")

    return check


def leave_terminal() -> None:
    """Write to nowhere from now on: the pipe to a dead worker is broken."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (sys.stdout, sys.stderr):
        os.dup2(nowhere, stream.fileno())


def ended_early(ended: StageEnded, done: str) -> State[Any]:
    """Return the state of a run that was ended before it was done, with what it had done."""
    kind = Crashed if isinstance(ended, WorkerGone) else Cancelled
    return kind(message=f"{ended}. {done}. Nothing finished is lost; a new run goes on from there.")
