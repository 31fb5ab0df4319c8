"""Flow `run-stage`: one stage in a remote worker's clone, for an orchestrator on another machine."""

from pathlib import Path

from dvc.config import Config
from prefect import flow, get_run_logger

from pipelines.flows.dvc_stage import DVC, GuardedRunner, Stop, environment
from pipelines.flows.graph import read_graph
from pipelines.flows.remote import push
from pipelines.flows.run_stages import claim
from pipelines.flows.workspace import LINKED, ROOT, git
from pipelines.repair import write_local_config


@flow(name="run-stage", flow_run_name="{stage}", persist_result=False)
def run_stage(stage: str, branch: str) -> None:
    """Run one stage in this worker's clone, on the files that the orchestrator has pushed to a branch."""
    with claim(ROOT):
        check_out(ROOT, branch)
        settings, stop = read_graph(ROOT)[stage], Stop()
        runner = GuardedRunner(ROOT, environment(None), settings.hours, stop, get_run_logger().info)
        try:
            if settings.parents:  # `dvc repro --pull` would keep outputs of an earlier run
                runner.run(*DVC, "--wait-for-lock", "pull", "--force", *sorted(settings.parents))
            runner.reproduce(stage, "--pull")
            push(runner, stage)
        finally:
            stop.set()


def check_out(root: Path, branch: str) -> None:
    """Check out a branch of the git remote; raise a ValueError if files have been edited here."""
    edited = [name for name in git(root, "diff", "--name-only", "HEAD").splitlines() if name != "dvc.lock"]
    if edited:
        raise ValueError(
            f"{root} has edited files: {', '.join(edited)}. A remote worker needs its own clone."
        )
    git(root, "fetch", "--quiet", "origin", f"refs/heads/{branch}")
    git(root, "checkout", "--quiet", "--force", "--detach", "FETCH_HEAD")
    if "type" not in Config(str(root / ".dvc")).get("cache", {}):
        write_local_config(root, {"cache": {"type": LINKED}})
