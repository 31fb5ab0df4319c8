"""What a Prefect server needs to know of this project, and a run of it followed to its end."""

import contextlib
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from uuid import UUID

import httpx
from prefect import get_client
from prefect.client.orchestration import SyncPrefectClient
from prefect.client.schemas.actions import WorkPoolCreate, WorkPoolUpdate
from prefect.client.schemas.filters import LogFilter, LogFilterFlowRunId
from prefect.client.schemas.objects import State
from prefect.client.schemas.sorting import LogSort
from prefect.events.schemas.automations import AutomationCore
from prefect.exceptions import ObjectAlreadyExists
from prefect.settings import PREFECT_UI_URL
from ruamel.yaml import YAML

from pipelines import shell
from pipelines.flows import access
from pipelines.flows.workspace import ROOT

POLL = 2.0  # seconds between two queries of a run's state and log
PAGE = 200  # log lines that the server gives at once
POOLS = {
    "gpu": "flows that run the whole pipeline, on a machine with the data",
    "remote": "single stages in clones on other machines",
}


def deploy() -> None:
    """Set up pools, automation and deployments; what is there already is brought up to date."""
    make_pools([])
    with get_client(sync_client=True) as client:
        content = YAML(typ="safe", pure=True).load(ROOT / "deploy" / "automation.yaml")
        automation = AutomationCore.model_validate(content)
        if not client.read_automations_by_name(automation.name):
            client.create_automation(automation)
    shell.run(sys.executable, "-m", "prefect", "--no-prompt", "deploy", "--all", cwd=ROOT)


def make_pools(queues: Sequence[str]) -> None:
    """Make the work pools, and work queues of the pool for remote workers, or bring them up to date."""
    with get_client(sync_client=True) as client:
        for name, description in POOLS.items():
            with contextlib.suppress(ObjectAlreadyExists):
                client.create_work_pool(WorkPoolCreate(name=name, type="process", description=description))
            client.update_work_pool(name, WorkPoolUpdate(base_job_template=access.JOB_TEMPLATE))
        for name in queues:  # a worker gets no run at all while one of its queues is missing
            with contextlib.suppress(ObjectAlreadyExists):
                client.create_work_queue(name, work_pool_name="remote")


def trigger_and_follow(flow: str, params: Mapping[str, Any], check: Callable[[], None]) -> int:
    """Run the flow, print its log as it comes, and return an exit status: 0 if it completed, else 1.

    `check` is called while the run waits to be taken; what it raises ends this.
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
    """Print the log lines of a flow run until it ends, each after its stage's name; return its last state.

    Prefect's own FlowRunSubscriber loses what is logged while the server is away.
    """
    names, printed = dict[UUID | None, str]({None: "flow"}), set[UUID]()
    of_run = LogFilter(flow_run_id=LogFilterFlowRunId(any_=[run]))
    while True:
        with contextlib.suppress(httpx.HTTPError):  # a server that restarts comes back
            state = client.read_flow_run(run).state
            # Each thread sends its lines in bundles, so a line may come after younger ones: look back a page.
            offset = max(0, len(printed) - PAGE)
            while page := client.read_logs(of_run, PAGE, offset, LogSort.TIMESTAMP_ASC):
                offset += len(page)
                for log in (log for log in page if log.id not in printed):
                    if log.task_run_id and log.task_run_id not in names:
                        names[log.task_run_id] = client.read_task_run(log.task_run_id).name
                    printed.add(log.id)
                    print(f"{names[log.task_run_id]:<16} {log.message}", flush=True)
            if state is not None and state.is_final():
                return state
            if state is not None and state.is_scheduled():
                check()
        time.sleep(POLL)
