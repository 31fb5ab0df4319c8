"""What a Prefect server needs to know of this project, and a run of it followed to its end."""

import contextlib
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from datetime import timedelta
from typing import Any
from uuid import UUID

import httpx
from prefect import get_client
from prefect.client.orchestration import SyncPrefectClient
from prefect.client.schemas.actions import WorkPoolCreate
from prefect.client.schemas.filters import LogFilter, LogFilterFlowRunId, LogFilterTimestamp
from prefect.client.schemas.objects import Log, State, StateType
from prefect.client.schemas.sorting import LogSort
from prefect.events.actions import ChangeFlowRunState
from prefect.events.schemas.automations import AutomationCore, EventTrigger, Posture
from prefect.events.schemas.events import ResourceSpecification
from prefect.exceptions import ObjectAlreadyExists
from prefect.settings import PREFECT_UI_URL
from prefect.types import DateTime

from pipelines.flows.workspace import ROOT

ZOMBIES = "convs2s: mark flow runs without heartbeat Crashed"
SILENCE = timedelta(seconds=90)
"""Without a heartbeat, which comes every 30 s, after which a run counts as dead."""
LOOK = 2.0
"""Seconds between two looks at a run."""
LATE = timedelta(seconds=30)
"""By which a log line may come after younger ones, for each thread sends its own in bundles."""
POOLS = {
    "gpu": "flows that run the whole pipeline, on a machine with the data",
    "remote": "single stages in clones on other machines",
}


def deploy() -> None:
    """Set up pools, automation and deployments; what is there already is brought up to date."""
    with get_client(sync_client=True) as client:
        for name, description in POOLS.items():
            pool = WorkPoolCreate(name=name, type="process", description=description)
            with contextlib.suppress(ObjectAlreadyExists):
                client.create_work_pool(pool)
        if not client.read_automations_by_name(ZOMBIES):
            client.create_automation(zombies())
    done = subprocess.run(
        [sys.executable, "-m", "prefect", "--no-prompt", "deploy", "--all"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(
            f"prefect deploy --all failed in {ROOT}:\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}"
        )


def zombies() -> AutomationCore:
    """Return the automation that marks a run Crashed whose process, worker or machine is gone."""
    ends = {f"prefect.flow-run.{name}" for name in ("Completed", "Failed", "Cancelled", "Crashed")}
    return AutomationCore(
        name=ZOMBIES,
        description="A flow run whose process was killed cannot say so itself.",
        trigger=EventTrigger(
            after={"prefect.flow-run.heartbeat"},
            expect={"prefect.flow-run.heartbeat"} | ends,
            match=ResourceSpecification({"prefect.resource.id": ["prefect.flow-run.*"]}),
            for_each={"prefect.resource.id"},
            posture=Posture.Proactive,
            threshold=1,
            within=SILENCE,
        ),
        actions=[
            ChangeFlowRunState(
                state=StateType.CRASHED,
                force=False,
                name="Crashed",
                message="No heartbeat for 90 s: the flow's process, worker or machine is gone. Nothing that "
                "was finished is lost; start it again.",
            )
        ],
    )


def trigger_and_follow(flow: str, params: Mapping[str, Any], check: Callable[[], None]) -> int:
    """Run a flow and print its log as it comes; return an exit status: 0 if it completed, else 1.

    Args:
        flow: reproduce or sweep.
        params: of the flow.
        check: called while the run waits to be taken; what it raises ends this.
    """
    with get_client(sync_client=True) as client:
        deployment = client.read_deployment_by_name(f"{flow}/gpu")
        run = client.create_flow_run_from_deployment(deployment.id, parameters={"params": dict(params)})
        address = f"{PREFECT_UI_URL.value()}/runs/flow-run/{run.id}"
        print(f"Watch it at {address}", flush=True)
        try:
            state = follow(client, run.id, check)
        except KeyboardInterrupt:
            print(f"\nThe run goes on: {address}. Cancel it there, or end all with: make flow-stop")
            return 130
    print(f"{state.name}: {state.message}\n{address}", flush=True)
    return 0 if state.is_completed() else 1


def follow(client: SyncPrefectClient, run: UUID, check: Callable[[], None]) -> State[Any]:
    """Print the log lines of a flow run until it ends, each after its stage's name; return its last state."""
    names: dict[UUID | None, str] = {None: "flow"}
    printed: set[UUID] = set()
    since: DateTime | None = None
    while True:
        with contextlib.suppress(httpx.HTTPError):  # a server that restarts comes back
            state = client.read_flow_run(run).state
            for log in new_logs(client, run, since, printed):
                since = log.timestamp - LATE
                if log.task_run_id and log.task_run_id not in names:
                    names[log.task_run_id] = client.read_task_run(log.task_run_id).name
                print(f"{names[log.task_run_id]:<16} {log.message}", flush=True)
            if state is not None and state.is_final():
                return state
            if state is not None and state.is_scheduled():
                check()
        time.sleep(LOOK)


def new_logs(
    client: SyncPrefectClient, run: UUID, since: DateTime | None, printed: set[UUID]
) -> Iterator[Log]:
    """Yield the lines that have come, oldest first, and count them as printed."""
    found = LogFilter(
        flow_run_id=LogFilterFlowRunId(any_=[run]),
        timestamp=LogFilterTimestamp(after_=since) if since else None,
    )
    offset = 0
    while page := client.read_logs(found, limit=200, offset=offset, sort=LogSort.TIMESTAMP_ASC):
        offset += len(page)
        for log in page:
            if log.id not in printed:
                printed.add(log.id)
                yield log
