"""Flow `reproduce`: does the work of `dvc repro`, with stages in parallel."""

import csv
import socket
import sys
from pathlib import Path
from typing import Any

from prefect import flow, get_run_logger, runtime
from prefect.artifacts import create_link_artifact, create_table_artifact
from prefect.states import Cancelled, State

from convs2s.base.files import read_json
from pipelines import shell
from pipelines.flows import experiment, workspace
from pipelines.flows.cancellation import stop_if_cancelled
from pipelines.flows.form import RunParams
from pipelines.flows.graph import read_graph
from pipelines.flows.run_stages import THREADS, StagesRun
from pipelines.flows.workspace import ROOT
from pipelines.later_keys import check_record


def run_name() -> str:
    """Return a flow run's name: the revision, and what differs from params.yaml."""
    params = RunParams.model_validate(runtime.flow_run.parameters.get("params") or {})
    return ", ".join([workspace.revision(ROOT), *params.overrides])


@flow(name="reproduce", flow_run_name=run_name, task_runner=THREADS, persist_result=False)
def reproduce(params: RunParams = RunParams()) -> State[Any]:  # noqa: B008
    """Bring every stage of dvc.yaml up to date, each as soon as its parents are and resources are free.

    This does the same as `dvc repro`, except that trainings that share a CPU's cores have fewer threads each,
    so their results can differ by rounding. A stage's final state says what DVC did: Executed, Unchanged, or
    Cached (restored). With overrides, the results become a DVC experiment (`dvc exp show`).
    """
    with experiment.claim(ROOT), stop_if_cancelled() as stop:
        root = ROOT
        name = ""  # of the experiment, if there are overrides
        text, values = params.render(ROOT)  # which checks params.yaml
        check_record(ROOT)
        if changes := params.changes():
            name = experiment.experiment_name(changes, workspace.snapshot(ROOT))
            root = experiment.copy_workspace(ROOT, experiment.experiment_name(changes), text, values)
        state = StagesRun(params, list(read_graph(root).values()), stop).run()
        if state.is_completed() and (root / "data" / "evaluation" / "scores.csv").is_file():
            show_report(root, name)
        if name and state.is_completed() and not stop.is_set():
            experiment.keep_experiment(ROOT, root, name)
    return Cancelled(message=state.message) if stop.is_set() else state


def show_report(root: Path, name: str) -> None:
    """Write the report on a finished run, log and show its scores, and link to it.

    Args:
        root: the run's workspace, this clone or a copy of it; the report itself stays in this clone.
        name: the run's experiment; empty for a run in this clone.
    """
    page = ROOT / "data" / (f"report-{name}.html" if name else "report.html")
    command = [sys.executable, "-m", "pipelines.report", "--out", str(page), f"--experiment={name}"]
    get_run_logger().info("\n%s", shell.run(*command, cwd=root))
    with (root / "data" / "evaluation" / "scores.csv").open(encoding="utf-8", newline="") as table:
        scores = list(csv.DictReader(table))
    signatures = read_json(root / "data" / "evaluation" / "signatures.json")
    lines = [f"- {score}: `{signature}`" for score, signature in signatures.items()]
    stem = page.stem.lower()
    create_table_artifact(scores, f"scores-{stem}", "\n".join(["Signatures:\n", *lines]))
    where = f"On {socket.gethostname()}; browsers open a file only from their address bar: `{page}`"
    create_link_artifact(page.as_uri(), page.name, stem, where)
