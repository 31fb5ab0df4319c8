"""Flow `reproduce`: does the work of `dvc repro`, with stages in parallel."""

from typing import Any

from prefect import flow, runtime
from prefect.states import State

from pipelines.flows import artifacts, experiment, workspace
from pipelines.flows.form import RunParams
from pipelines.flows.graph import read_graph
from pipelines.flows.run_stages import THREADS, StagesRun, claim
from pipelines.flows.workspace import ROOT


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
    with claim(ROOT):
        root, name, (text, values) = ROOT, "", params.render(ROOT)  # which checks params.yaml
        if changes := params.changes():
            name = experiment.name_of(changes, workspace.snapshot(ROOT))
            root = experiment.copy_workspace(ROOT, experiment.name_of(changes), text, values)
        stages = list(read_graph(root).values())
        state = StagesRun(params, stages).run()
        if state.is_completed() and any("scores.csv" in stage.outputs for stage in stages):
            artifacts.show_report(root, name)
        if name and state.is_completed():
            experiment.keep_experiment(ROOT, root, name)
        return state
