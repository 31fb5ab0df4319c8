"""Deployments, work pools and automation of this project on a Prefect server, and runs of them."""

import asyncio
import contextlib
import sys
from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from prefect import get_client
from prefect.blocks.notifications import CustomWebhookNotificationBlock
from prefect.client.orchestration import SyncPrefectClient
from prefect.client.schemas.actions import WorkPoolCreate
from prefect.client.schemas.objects import FlowRun, Log
from prefect.events.schemas.automations import AutomationCore
from prefect.events.subscribers import FlowRunSubscriber
from prefect.exceptions import ObjectAlreadyExists, ObjectNotFound
from prefect.types import SecretDict
from ruamel.yaml import YAML

from pipelines import shell
from pipelines.flows import status
from pipelines.flows.run_stages import WIDTH
from pipelines.flows.workspace import ROOT

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


def notify(url: str) -> None:
    """Have the server post a message to a web hook when a run fails, in place of an earlier one."""
    message = {"text": "{{subject}}\n{{body}}"}
    hook = CustomWebhookNotificationBlock(  # whose `url` its page would show
        name="convs2s",
        url="{{url}}",
        json_data=message,
        headers=None,
        cookies=None,
        secrets=SecretDict({"url": url}),
    )
    block = hook.save("convs2s-failures", overwrite=True)
    content = YAML(typ="safe", pure=True).load(ROOT / "deploy" / "failure-notice.yaml")
    content["actions"][0]["block_document_id"] = block
    automation = AutomationCore.model_validate(content)
    with get_client(sync_client=True) as client:
        for earlier in client.read_automations_by_name(automation.name):
            client.delete_automation(earlier.id)
        client.create_automation(automation)


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
    """Run the flow, print its log, and return an exit status, as `follow_run` does."""
    with get_client(sync_client=True) as client:
        deployment = client.read_deployment_by_name(f"{flow}/{flow}")
        before = [run for run in status.in_states(client, *status.TAKEN) if run.work_pool_name == "pipelines"]
        run = client.create_flow_run_from_deployment(deployment.id, parameters={"params": dict(params)})
        print(f"Watch it at {status.address(run)}", flush=True)
        for other in before:
            print(f"It waits for the run {other.name}: {status.address(other)}")
            print(f"To see what that does: make flow-status. {status.HELP}", flush=True)
        return follow_run(run, client)


def follow_unfinished(run_id: UUID | None) -> int:
    """Follow the run with this id, or the first that has not ended; return an exit status."""
    with get_client(sync_client=True) as client:
        try:
            runs = [client.read_flow_run(run_id)] if run_id else status.due(client)
        except ObjectNotFound:
            raise ValueError(
                f"RUN={run_id}: expected the id of a run, which is at the end of its page's address, found "
                "none on this server: make flow-status"
            ) from None
        runs.sort(key=lambda run: not status.is_taken(run))
        if not runs:
            print("Nothing is running or waiting.")
            return 0
        print(f"Watch it at {status.address(runs[0])}", flush=True)
        return follow_run(runs[0], client)


def follow_run(run: FlowRun, client: SyncPrefectClient) -> int:
    """Print the log of a run; return an exit status: 0 if it completed, 130 at Ctrl-C, else 1."""
    address = status.address(run)
    again = f"To follow it again: make flow-follow RUN={run.id}"
    state = client.read_flow_run(run.id).state
    try:
        if state is None or not state.is_final():
            asyncio.run(print_log(run.id))
            state = client.read_flow_run(run.id).state
    except KeyboardInterrupt:
        print(f"\nThe run continues: {address}. Cancel it there, or stop everything with: make flow-stop")
        print(again)
        return 130
    except Exception as error:
        print(f"\nThe server no longer answers: {error}\nThe run goes on without it. {again}")
        return 1
    assert state is not None
    print(f"\n{state.name}: {state.message}\n{address}", flush=True)
    return 0 if state.is_completed() else 1


async def print_log(run: UUID) -> None:
    """Print the log of a run until it ends, each line with the name of its stage."""
    async with FlowRunSubscriber(run) as subscriber:
        async for item in subscriber:
            if isinstance(item, Log):  # otherwise an event, whose states are in the log, too
                stage = "" if item.task_run_id else f"{'flow':<{WIDTH}} "  # StageFormatter has put it there
                print(f"{stage}{item.message}", flush=True)
