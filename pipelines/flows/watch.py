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


def make_check() -> Callable[[], State[Any] | None]:
    """Return a function that returns the state to end this flow run in once nobody wants it any more.

    That is Crashed when the worker that started it was killed, for no other takes it over, and Cancelled when
    somebody has cancelled or ended it. A run that the server takes for Crashed, since it was away itself and
    has heard no heartbeat, is set Running again.
    """
    access.hold(PREFECT_API_URL.value() or "")
    worker = os.getppid() if "PREFECT__FLOW_RUN_ID" in os.environ else None
    run = runtime.flow_run.id
    if worker is not None:
        # Prefect logs through Rich, which ends the process at the first line that it cannot write: if the
        # worker is killed, before anybody could tell the server why.
        Console.on_broken_pipe = lambda self: leave_terminal()  # type: ignore[method-assign]

    def check() -> State[Any] | None:
        if worker is not None and os.getppid() != worker:
            leave_terminal()
            return Crashed(message="the worker that had started this run is gone: its stages were ended")
        # A server that is away must not keep us from checking on the worker: ask once, briefly.
        impatient = {PREFECT_CLIENT_MAX_RETRIES: 0, PREFECT_API_REQUEST_TIMEOUT: 5.0}
        try:
            with temporary_settings(impatient), get_client(sync_client=True) as client:
                state = client.read_flow_run(run).state
                if state and state.is_crashed():
                    client.set_flow_run_state(run, Running(), force=True)
                    return None
        except (httpx.HTTPError, RuntimeError):
            return None  # the stages go on
        if state and (state.is_cancelling() or state.is_final()):
            return Cancelled(message=f"the server has the flow run as {state.name}: its stages were ended")
        return None

    return check


def leave_terminal() -> None:
    """Write to nowhere from now on: the pipe to a dead worker is broken."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (sys.stdout, sys.stderr):
        os.dup2(nowhere, stream.fileno())
