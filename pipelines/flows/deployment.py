"""Deployments, work pools and automation of this project on a Prefect server, and runs of them."""

import contextlib
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from uuid import UUID

import httpx
from prefect import get_client
from prefect.client.orchestration import SyncPrefectClient
from prefect.client.schemas.actions import WorkPoolCreate
from prefect.client.schemas.filters import LogFilter
from prefect.client.schemas.objects import State
from prefect.client.schemas.sorting import LogSort
from prefect.events.schemas.automations import AutomationCore
from prefect.exceptions import ObjectAlreadyExists
from prefect.settings import PREFECT_CLIENT_MAX_RETRIES, temporary_settings
from ruamel.yaml import YAML

from pipelines import shell
from pipelines.flows import artifacts
from pipelines.flows.workspace import ROOT

POLL = 2.0  # seconds between queries of a run's state and log
PAGE = 200  # log lines per request
RETRIES = (
    4  # of a request without an answer, after 2, 4, ... s: who watches a run waits less long than the run
)
WIDTH = len("download@development")  # of stage names in the log
# Prefect's default template lets a run set command, environment and working directory; ours has no variables.
# With output to its worker, a run would end at the first line after the worker was killed, without a report.
JOB_TEMPLATE = {
    "job_configuration": {"stream_output": False},
    "variables": {"type": "object", "properties": {}, "additionalProperties": False},
}
POOLS = {
    "pipelines": "flows that run the whole pipeline, on the machine that has the data",
    "remote": "single stages in clones on other machines",
}


def deploy() -> None:
    """Create work pools, automation and deployments, or bring existing ones up to date."""
    make_pools([])
    with get_client(sync_client=True) as client:
        content = YAML(typ="safe", pure=True).load(ROOT / "deploy" / "automation.yaml")
        automation = AutomationCore.model_validate(content)
        if not client.read_automations_by_name(automation.name):
            client.create_automation(automation)
    shell.run(sys.executable, "-m", "prefect", "--no-prompt", "deploy", "--all", cwd=ROOT)


def make_pools(queues: Sequence[str]) -> None:
    """Create the work pools, or bring them up to date, and the work queues of the pool `remote`."""
    with get_client(sync_client=True) as client:
        for name, description in POOLS.items():
            pool = WorkPoolCreate(name=name, type="process", description=description)
            pool.base_job_template = JOB_TEMPLATE
            client.create_work_pool(pool, overwrite=True)
        for name in queues:  # a worker gets no runs at all while one of its queues is missing
            with contextlib.suppress(ObjectAlreadyExists):
                client.create_work_queue(name, work_pool_name="remote")


def trigger_and_follow(flow: str, params: Mapping[str, Any], check: Callable[[], None]) -> int:
    """Run the flow, print its log, and return an exit status: 0 if it completed, 130 at Ctrl-C, else 1.

    Args:
        check: called while the run waits for a worker; its exceptions are passed on.

    Raises:
        RuntimeError: if the server no longer answers.
    """
    with get_client(sync_client=True) as client:
        deployment = client.read_deployment_by_name(f"{flow}/{flow}")
        run = client.create_flow_run_from_deployment(deployment.id, parameters={"params": dict(params)})
        address = artifacts.address("runs/flow-run", run.id)
        print(f"Watch it at {address}", flush=True)
        try:
            with temporary_settings({PREFECT_CLIENT_MAX_RETRIES: RETRIES}):
                state = follow(client, run.id, check)
        except httpx.TransportError as error:
            raise RuntimeError(
                f"the Prefect server no longer answers ({error}). If make flow-stop stopped it, the run has "
                f"ended, too; if it comes back, the run is at {address}"
            ) from None
        except KeyboardInterrupt:
            print(f"\nThe run continues: {address}. Cancel it there, or stop everything with: make flow-stop")
            return 130
    print(f"\n{state.name}: {state.message}\n{address}", flush=True)
    return 0 if state.is_completed() else 1


def follow(client: SyncPrefectClient, run: UUID, check: Callable[[], None]) -> State[Any]:
    """Print the log of a run until it ends, each line with the name of its stage; return the last state.

    `prefect deployment run --watch` prints events without end, and neither the stages nor the final message.
    """
    of_run = LogFilter.model_validate({"flow_run_id": {"any_": [run]}})
    names: dict[UUID | None, str] = {None: "flow"}
    seen, ended = set[UUID](), False
    while True:
        state = client.read_flow_run(run).state
        assert state is not None
        # Threads send their lines in batches, so a line can arrive after newer ones: go back one page.
        offset = max(0, len(seen) - PAGE)
        while page := client.read_logs(of_run, PAGE, offset, LogSort.TIMESTAMP_ASC):
            offset += len(page)
            for log in (log for log in page if log.id not in seen):
                seen.add(log.id)
                if log.task_run_id not in names:
                    assert log.task_run_id is not None
                    names[log.task_run_id] = client.read_task_run(log.task_run_id).name
                print(f"{names[log.task_run_id]:<{WIDTH}} {log.message}", flush=True)
        if ended:  # its last lines may arrive late, so this was a look once more
            return state
        ended = state.is_final()
        if state.is_scheduled():
            check()
        time.sleep(POLL)
