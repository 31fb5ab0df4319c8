"""Checks in a flow run whether it should continue, because a killed worker cannot cancel its runs."""

import os
import sys
from collections.abc import Callable
from typing import Any

import httpx
from prefect import get_client, runtime
from prefect.settings import PREFECT_API_REQUEST_TIMEOUT, PREFECT_CLIENT_MAX_RETRIES, temporary_settings
from prefect.states import Cancelled, Crashed, Running, State
from rich.console import Console


def make_check() -> Callable[[], State[Any] | None]:
    """Return a function that returns None while this flow run should continue, and then its final state.

    The state is Crashed if the worker that started the run was killed, because no other worker takes it over,
    and Cancelled if the run was cancelled or ended on the server. If the server has marked the run Crashed
    only because it was down itself and missed the heartbeats, the run is set to Running again.
    """
    worker = os.getppid() if "PREFECT__FLOW_RUN_ID" in os.environ else None
    run = runtime.flow_run.id
    if worker is not None:
        # Prefect logs through Rich, which exits at the first line that it cannot write. After the worker is
        # killed, that would be before the run could report its state.
        Console.on_broken_pipe = lambda self: discard_output()  # type: ignore[method-assign]

    def check() -> State[Any] | None:
        if worker is not None and os.getppid() != worker:
            discard_output()
            return Crashed(message="the worker that had started this run is gone: its stages were ended")
        # An unreachable server must not delay the next check of the worker: try once, with a short timeout.
        impatient = {PREFECT_CLIENT_MAX_RETRIES: 0, PREFECT_API_REQUEST_TIMEOUT: 5.0}
        try:
            with temporary_settings(impatient), get_client(sync_client=True) as client:
                state = client.read_flow_run(run).state
                if state and state.is_crashed():
                    client.set_flow_run_state(run, Running(), force=True)
                    return None
        except (httpx.HTTPError, RuntimeError):
            return None  # the stages continue
        if state and (state.is_cancelling() or state.is_final()):
            return Cancelled(message=f"the server has the flow run as {state.name}: its stages were ended")
        return None

    return check


def discard_output() -> None:
    """Discard all further output: the pipe to the dead worker is broken."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (sys.stdout, sys.stderr):
        os.dup2(nowhere, stream.fileno())
