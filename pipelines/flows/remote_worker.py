"""Flow `run-stage`: one stage in a remote worker's clone, for an orchestrator on another machine."""

from pathlib import Path
from typing import Annotated, Any

from dvc.config import Config
from prefect import flow
from prefect.states import State
from pydantic import Field

from convs2s.config.load import load_params
from pipelines.flows.form import Positive, RunParams
from pipelines.flows.graph import read_graph, restrict
from pipelines.flows.run_stages import THREADS, StagesRun, claim
from pipelines.flows.workspace import LINKED, ROOT, git
from pipelines.repair import write_local_config

# Plain names only: git would also accept options, refspecs and programs.
Name = Annotated[str, Field(pattern=r"^\w[\w@.-]*$")]
Branch = Annotated[str, Field(pattern=r"^run/\w[\w-]*/\w[\w@.-]*$")]
Commit = Annotated[str, Field(pattern=r"^[0-9a-f]{40,64}$")]


@flow(name="run-stage", flow_run_name="{stage}", task_runner=THREADS, persist_result=False)
def run_stage(
    stage: Name, branch: Branch, commit: Commit, git_remote: Name, seconds: Positive = 86_400.0
) -> State[Any]:
    """Run one stage in this worker's clone, on the files that the orchestrator has pushed to a branch."""
    with claim(ROOT):
        check_out(ROOT, git_remote, branch, commit)
        alone = restrict(read_graph(ROOT), [stage])[stage]
        tags = [load_params(ROOT / "params.yaml").package.name]
        return StagesRun(RunParams(hours={stage: seconds / 3600}), [alone], tags, for_others=True).run()


def check_out(root: Path, git_remote: str, branch: str, commit: str) -> None:
    """Check out the commit of a run; raise a ValueError if files have been edited here, to keep the edits."""
    edited = [name for name in git(root, "diff", "--name-only", "HEAD").splitlines() if name != "dvc.lock"]
    if edited:
        raise ValueError(
            f"{root} has edited files: {', '.join(edited)}. A remote worker needs its own clone."
        )
    git(root, "fetch", "--quiet", git_remote, f"refs/heads/{branch}")
    git(root, "checkout", "--quiet", "--force", "--detach", commit)
    if "type" not in Config(str(root / ".dvc")).get("cache", {}):
        write_local_config(root, {"cache": {"type": LINKED}})
