"""Checks in a flow run whether it should continue, because a killed worker cannot cancel its runs."""

import os
from collections.abc import Callable
from typing import Any

import httpx
from prefect import get_client, runtime
from prefect.settings import PREFECT_API_REQUEST_TIMEOUT, PREFECT_CLIENT_MAX_RETRIES, temporary_settings
from prefect.states import Cancelled, Crashed, Running, State


def make_check() -> Callable[[], State[Any] | None]:
    """Return a function that returns None while this flow run should continue, and then its final state.

    The state is Crashed if the worker that started the run was killed, because no other worker takes it over,
    and Cancelled if the run was cancelled or ended on the server. If the server has marked the run Crashed
    only because it was down itself and missed the heartbeats, the run is set to Running again.
    """
    parent, run = os.getppid(), runtime.flow_run.id

    def check() -> State[Any] | None:
        if "PREFECT__FLOW_RUN_ID" in os.environ and os.getppid() != parent:
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
