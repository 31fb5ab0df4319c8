"""The artifact that summarizes a run: scores, stages, and links to all other artifacts."""

import socket
from datetime import timedelta
from typing import Any

from prefect import get_client, get_run_logger, runtime
from prefect.artifacts import create_markdown_artifact
from prefect.client.schemas.filters import ArtifactFilter
from prefect.states import State

from pipelines.flows import artifacts
from pipelines.flows.run_stages import StagesRun

KEY = "1-summary"  # sorts first


def summarize(run: StagesRun, state: State[Any], scores: str = "") -> State[Any]:
    """Log the scores of a run, create its summary with links to all other artifacts, and return its state."""
    if scores:
        get_run_logger().info("\n%s", scores)
    with artifacts.warn_if_not_shown(), get_client(sync_client=True) as client:
        of_run = ArtifactFilter.model_validate({"flow_run_id": {"any_": [runtime.flow_run.id]}})
        found = sorted(client.read_artifacts(artifact_filter=of_run), key=lambda one: one.key or "")
        links = [f"- [{one.key}]({artifacts.address('artifacts/artifact', one.id)})" for one in found]
        gpus = f"GPUs {', '.join(map(str, run.gpus))}" if run.gpus else "no GPU"
        lines = [
            f"# {runtime.flow_run.name}\n",
            f"{len(run.stages)} stages, {len(run.fresh)} of them up to date before; "
            f"on {socket.gethostname()}, {gpus}.\n",
            f"**{state.name}**: {state.message}\n",
            f"## Scores\n\n```text\n{scores}\n```\n" if scores else "",
            *("## Stages\n", "| stage | state | time |", "|---|---|---|"),
            *(f"| {title} | {last.name} | {took(run, title)} |" for title, last in run.states().items()),
            *("\n## Pictures and tables\n", *links),
        ]
        create_markdown_artifact("\n".join(lines), KEY, "Summary of the run")
    return state


def took(run: StagesRun, title: str) -> str:
    """Return a stage's run time; empty if it did not run."""
    seconds = run.seconds.get(title)
    return "" if seconds is None else str(timedelta(seconds=round(seconds)))
