"""The artifact that sums up a run: what it is of, scores, stages, and links to all else that is shown."""

import re
import socket
from datetime import timedelta
from typing import Any
from uuid import UUID

from prefect import get_client, runtime
from prefect.artifacts import create_markdown_artifact
from prefect.client.orchestration import SyncPrefectClient
from prefect.client.schemas.actions import ArtifactUpdate
from prefect.client.schemas.filters import ArtifactFilter
from prefect.client.schemas.objects import Artifact
from prefect.states import State

from pipelines.flows import artifacts
from pipelines.flows.run_stages import StagesRun

KEY = "1-summary"  # the first of all keys
SCORES = re.compile(r"\n```text\n(.*?)\n```\n", re.DOTALL)


class Summary:
    """The summary of a run: begun when made, complete after `finish`."""

    def __init__(self, run: StagesRun) -> None:
        self.run, self.identity = run, None
        gpus = f"GPUs {', '.join(map(str, run.gpus))}" if run.gpus else "no GPU"
        count = f"{len(run.stages())} stages, {len(run.fresh)} of them up to date before"
        self.head = f"# {runtime.flow_run.name}\n\n{count}; on {socket.gethostname()}, {gpus}.\n"
        with artifacts.shown():
            self.identity = create_markdown_artifact(self.head, KEY, "The run in short")

    def finish(self, state: State[Any], scores: str = "") -> None:
        """Show how the run ended."""
        stages = ["\n## Stages\n", "| stage | state | time |", "|---|---|---|"]
        for title, last in self.run.states().items():
            seconds = self.run.seconds.get(title)
            took = "" if seconds is None else timedelta(seconds=round(seconds))
            stages.append(f"| {title} | {last.name} | {took} |")
        section = f"\n## Scores\n\n```text\n{scores.strip()}\n```\n" if scores else ""
        with artifacts.shown(), get_client(sync_client=True) as client:
            links = ["\n## Pictures and tables\n"]
            for found in read_artifacts(client, UUID(runtime.flow_run.id))[1:]:  # not this one
                links.append(f"- [{found.key}]({artifacts.address('artifacts/artifact', found.id)})")
            text = "\n".join([self.head, f"**{state.name}**: {state.message}\n{section}", *stages, *links])
            assert isinstance(self.identity, UUID)
            client.update_artifact(self.identity, ArtifactUpdate(data=text))


def read_artifacts(client: SyncPrefectClient, run: UUID, **only: str) -> list[Artifact]:
    """Return the artifacts of a flow run, or only those of a type or key, in the order of their keys."""
    wanted = {"flow_run_id": {"any_": [run]}, **{name: {"any_": [value]} for name, value in only.items()}}
    found = client.read_artifacts(artifact_filter=ArtifactFilter.model_validate(wanted))
    return sorted(found, key=lambda artifact: artifact.key or "")


def scores_of(client: SyncPrefectClient, run: UUID) -> str:
    """Return the scores of a flow run that has ended, empty if it has none."""
    texts = [str(found.data) for found in read_artifacts(client, run, key=KEY)]
    return "\n".join(scores for text in texts for scores in SCORES.findall(text))
