"""What runs on the server, what waits, and for what: `make flow-status`."""

from collections.abc import Iterator
from datetime import UTC, datetime

from prefect import get_client
from prefect.client.orchestration import SyncPrefectClient
from prefect.client.schemas.filters import (
    FlowRunFilter,
    FlowRunFilterId,
    FlowRunFilterState,
    FlowRunFilterStateType,
    LogFilter,
    LogFilterTaskRunId,
)
from prefect.client.schemas.objects import FlowRun, StateType, TaskRun, WorkerStatus, WorkQueueStatus
from prefect.client.schemas.sorting import FlowRunSort, LogSort
from prefect.settings import PREFECT_UI_URL

from pipelines.flows.run_stages import WIDTH

TAKEN = (StateType.PENDING, StateType.RUNNING, StateType.CANCELLING)  # by a worker
HELP = "To cancel a run: its page, the menu with the three dots, Cancel. To follow its log: make flow-follow"


def print_runs() -> None:
    """Print all runs that have not ended."""
    with get_client(sync_client=True) as client:
        runs = due(client)
        print(*(line for run in runs for line in describe_run(run, runs, client)), sep="\n")
        print(HELP if runs else "Nothing is running or waiting.")


def due(client: SyncPrefectClient) -> list[FlowRun]:
    """Return the runs that have not ended, but of those that are scheduled for later, only the next."""
    runs = in_states(client, *TAKEN, StateType.SCHEDULED)
    now = datetime.now(UTC)
    later = [run for run in runs if run.expected_start_time and run.expected_start_time > now]
    return [run for run in runs if run not in later[1:]]


def in_states(client: SyncPrefectClient, *types: StateType) -> list[FlowRun]:
    """Return the runs in states of these types, in the order in which they start."""
    state = FlowRunFilterState(type=FlowRunFilterStateType(any_=[*types]))
    order = FlowRunSort.EXPECTED_START_TIME_DESC
    return client.read_flow_runs(flow_run_filter=FlowRunFilter(state=state), sort=order)[::-1]


def address(run: FlowRun) -> str:
    """Return the address of a run's page."""
    return f"{PREFECT_UI_URL.value()}/v2/runs/flow-run/{run.id}"


def describe_run(run: FlowRun, runs: list[FlowRun], client: SyncPrefectClient) -> Iterator[str]:
    """Yield lines about a run: its state, and what it waits for or what its stages do."""
    assert run.state is not None
    since = run.start_time or run.expected_start_time or run.state.timestamp
    yield f"{client.read_flow(run.flow_id).name} {run.name}: {run.state.name}, {since:%d %b %H:%M} UTC"
    yield f"    {address(run)}"
    if run.state.type == StateType.SCHEDULED:
        yield f"    {reason(run, runs, client)}"
    tasks = client.read_task_runs(flow_run_filter=FlowRunFilter(id=FlowRunFilterId(any_=[run.id])))
    for task in tasks:
        if task.state is not None and task.state.is_running():
            yield f"    {last_line(task, client)}"
    if waiting := sum(task.state is not None and task.state.is_pending() for task in tasks):
        yield f"    {waiting} stage(s) wait for others"


def last_line(task: TaskRun, client: SyncPrefectClient) -> str:
    """Return the last line that a stage has logged; it begins with the stage's name."""
    of_task = LogFilter(task_run_id=LogFilterTaskRunId(any_=[task.id]))
    logs = client.read_logs(of_task, limit=1, sort=LogSort.TIMESTAMP_DESC)
    return logs[0].message if logs else f"{task.name:<{WIDTH}} has started"


def reason(run: FlowRun, runs: list[FlowRun], client: SyncPrefectClient) -> str:
    """Return why a run has not started."""
    if run.expected_start_time and run.expected_start_time > datetime.now(UTC):
        return "is scheduled for later"
    pool, queue = run.work_pool_name or "", run.work_queue_name
    if pool == "remote":
        served = [q.name for q in client.read_work_queues(pool) if q.status == WorkQueueStatus.READY]
        if queue not in served:
            return (
                f"waits for a worker of the queue {queue}; queues with workers: {', '.join(served) or 'none'}"
            )
        return f"waits for a worker of the queue {queue}; all are busy"
    if all(worker.status != WorkerStatus.ONLINE for worker in client.read_workers_for_work_pool(pool)):
        return f"waits for a worker of the pool {pool}; none is running"
    taken = [other for other in runs if other.work_pool_name == pool and is_taken(other)]
    return "waits for " + (", ".join(f"the run {other.name}" for other in taken) or "its worker")


def is_taken(run: FlowRun) -> bool:
    """Return whether a worker has a run."""
    return run.state is not None and run.state.type in TAKEN
