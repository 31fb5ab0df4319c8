"""Deployments, work pools and automation of this project on a Prefect server, and runs of them."""

import asyncio
import contextlib
import sys
from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from prefect import get_client
from prefect.client.schemas.actions import WorkPoolCreate
from prefect.client.schemas.objects import Log
from prefect.events.schemas.automations import AutomationCore
from prefect.events.subscribers import FlowRunSubscriber
from prefect.exceptions import ObjectAlreadyExists, ObjectNotFound
from prefect.settings import PREFECT_UI_URL
from ruamel.yaml import YAML

from pipelines import shell
from pipelines.flows.workspace import ROOT

WIDTH = len("download@development")  # of stage names in the log
# Prefect's default template lets a run set command, environment and working directory; ours has no variables.
# With output to its worker, a run would end at the first line after the worker was killed.
JOB_TEMPLATE = {
    "job_configuration": {"stream_output": False},
    "variables": {"type": "object", "properties": {}, "additionalProperties": False},
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
        for name in ("pipelines", "remote"):
            pool = WorkPoolCreate(name=name, type="process", base_job_template=JOB_TEMPLATE)
            client.create_work_pool(pool, overwrite=True)
        for name in queues:  # a worker gets no runs at all while one of its queues is missing
            with contextlib.suppress(ObjectAlreadyExists):
                client.create_work_queue(name, work_pool_name="remote")


def trigger_and_follow(flow: str, params: Mapping[str, Any]) -> int:
    """Run the flow, print its log, and return an exit status: 0 if it completed, 130 at Ctrl-C, else 1."""
    with get_client(sync_client=True) as client:
        deployment = client.read_deployment_by_name(f"{flow}/{flow}")
        run = client.create_flow_run_from_deployment(deployment.id, parameters={"params": dict(params)})
        address = f"{PREFECT_UI_URL.value()}/v2/runs/flow-run/{run.id}"
        print(f"Watch it at {address}", flush=True)
        try:
            asyncio.run(print_log(run.id))
        except KeyboardInterrupt:
            print(f"\nThe run continues: {address}. Cancel it there, or stop everything with: make flow-stop")
            return 130
        state = client.read_flow_run(run.id).state
    assert state is not None
    print(f"\n{state.name}: {state.message}\n{address}", flush=True)
    return 0 if state.is_completed() else 1


async def print_log(run: UUID) -> None:
    """Print the log of a run until it ends, each line with the name of its stage."""
    names: dict[UUID | None, str] = {None: "flow"}
    async with get_client() as client, FlowRunSubscriber(run) as subscriber:
        async for item in subscriber:
            if isinstance(item, Log):  # otherwise an event, whose states are in the log, too
                if (task := item.task_run_id) and task not in names:
                    with contextlib.suppress(ObjectNotFound):  # its log may come before the server records it
                        names[task] = (await client.read_task_run(task)).name
                print(f"{names.get(task, 'stage'):<{WIDTH}} {item.message}", flush=True)
