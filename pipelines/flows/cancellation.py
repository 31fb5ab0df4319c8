"""A flow run asks the server itself whether it has been cancelled.

Prefect's worker does so, too, and ends the run's process. But it may have been killed; and once the server
has been away for half a minute, it stops asking, for good.
"""

import contextlib
import threading
from collections.abc import Iterator
from uuid import UUID

from prefect import get_client, runtime
from prefect.client.orchestration import SyncPrefectClient
from prefect.settings import PREFECT_CLIENT_MAX_RETRIES, temporary_settings
from prefect.states import Running

from pipelines.flows.dvc_stage import Stop

POLL = 3.0  # seconds between questions
TIMEOUT = 10.0  # seconds for an answer


@contextlib.contextmanager
def stop_if_cancelled() -> Iterator[Stop]:
    """Yield a `Stop` for the stages of the current flow run, which is set when the run is cancelled."""
    stop = Stop()
    over = threading.Event()
    watcher = threading.Thread(target=watch, args=(UUID(runtime.flow_run.id), stop, over), daemon=True)
    watcher.start()
    try:
        yield stop
    finally:
        over.set()
        watcher.join()


@contextlib.contextmanager
def client_without_retries() -> Iterator[SyncPrefectClient]:
    """Yield a client for the current thread that gives up at once, for loops that ask every few seconds.

    Prefect's own retries may be minutes apart, but what counts is that the server answers again.
    """
    with (
        temporary_settings({PREFECT_CLIENT_MAX_RETRIES: 0}),
        get_client(sync_client=True, httpx_settings={"timeout": TIMEOUT}) as client,
    ):
        yield client


def watch(run: UUID, stop: Stop, over: threading.Event) -> None:
    """Ask for the state of a flow run until it is cancelled, which sets `stop`, or until `over` is set."""
    with client_without_retries() as client:
        while not stop.is_set():
            is_last = over.wait(POLL)
            with contextlib.suppress(Exception):  # whatever it was, the next answer may be better
                if is_cancelled(run, client):
                    stop.set()
            if is_last:
                return


def is_cancelled(run: UUID, client: SyncPrefectClient) -> bool:
    """Return whether a flow run of this process has been cancelled; if it is shown as Crashed, correct that.

    While the server was away, it got no heartbeats, so the automation takes the run for dead. Nobody could
    then cancel it.
    """
    state = client.read_flow_run(run).state
    assert state is not None
    if state.is_crashed():
        client.set_flow_run_state(run, Running(message="It goes on: its process is alive."), force=True)
    return state.is_cancelling() or state.is_cancelled()
