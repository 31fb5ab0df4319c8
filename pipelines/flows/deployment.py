"""Deployments, work pools and automation of this project on a Prefect server, and runs of them."""

import contextlib
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from prefect import get_client
from prefect.client.schemas.actions import WorkPoolCreate, WorkPoolUpdate
from prefect.events.schemas.automations import AutomationCore
from prefect.exceptions import ObjectAlreadyExists
from prefect.settings import PREFECT_API_REQUEST_TIMEOUT, PREFECT_CLIENT_MAX_RETRIES, temporary_settings
from ruamel.yaml import YAML

from pipelines import shell
from pipelines.flows import artifacts, terminal
from pipelines.flows.workspace import ROOT

# Prefect's default template lets a run set command, environment and working directory; ours has no variables.
JOB_TEMPLATE = {
    "job_configuration": {"stream_output": True},
    "variables": {"type": "object", "properties": {}, "additionalProperties": False},
}
POOLS = {
    "gpu": "flows that run the whole pipeline, on the machine that has the data",
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
            with contextlib.suppress(ObjectAlreadyExists):
                client.create_work_pool(WorkPoolCreate(name=name, type="process", description=description))
            client.update_work_pool(name, WorkPoolUpdate(base_job_template=JOB_TEMPLATE))
        for name in queues:  # a worker gets no runs at all while one of its queues is missing
            with contextlib.suppress(ObjectAlreadyExists):
                client.create_work_queue(name, work_pool_name="remote")


def trigger_and_follow(
    flow: str, params: Mapping[str, Any], check: Callable[[], None], lost: Callable[[bool], None]
) -> int:
    """Run the flow, show its progress, and return an exit status: 0 if it completed, else 1.

    `check` and `lost` are those of `terminal.follow`.
    """
    with get_client(sync_client=True) as client:
        deployment = client.read_deployment_by_name(f"{flow}/{flow}")
        run = client.create_flow_run_from_deployment(deployment.id, parameters={"params": dict(params)})
        address = artifacts.address("runs/flow-run", run.id)
    print(f"Watch it at {address}", flush=True)
    # With Prefect's own retries, a query of a server that is gone would last for minutes.
    impatient = {PREFECT_CLIENT_MAX_RETRIES: 0, PREFECT_API_REQUEST_TIMEOUT: terminal.SILENCE}
    with temporary_settings(impatient), get_client(sync_client=True) as client:
        try:
            state = terminal.follow(client, run.id, check, lost)
        except KeyboardInterrupt:
            print(f"\nThe run continues: {address}. Cancel it there, or stop everything with: make flow-stop")
            return 130
    print(f"\n{state.name}: {state.message}\n{address}", flush=True)
    return 0 if state.is_completed() else 1
