"""The report of a flow run of the real pipeline at toy size."""

import json
import shutil
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from pipelines.flows.graph import read_graph
from tests.flows import toy
from tests.flows.server import Server
from tests.pipeline import run_here
from tests.test_end_to_end import toy_params


@pytest.fixture
def project(repo: Path) -> Path:
    """A clone of this project with a tiny corpus and a tiny model."""
    for name in ("experiments", "docs"):
        shutil.copytree(toy.ROOT / name, repo / name)
    (repo / "convs2s").symlink_to(toy.ROOT / "convs2s")  # with its compiled loops, which take long to make
    shutil.copy(toy.ROOT / "dvc.yaml", repo)
    (repo / "data" / "none").mkdir()
    (repo / "data" / "none" / ".gitkeep").touch()
    params = toy_params(repo / "data", "bpe").model_dump(mode="json")
    params["download"]["folder"] = "data/own"
    params["seeds"] = [1]
    params["evaluate"]["ensembles"] = []
    with (repo / "params.yaml").open("w") as stream:
        YAML().dump(params, stream)
    for stage in read_graph(repo).values():  # in this process, since imports take longer than the work
        run_here(stage.command, stage.name, repo)
    toy.dvc(repo, "commit", "--force")
    toy.set_params(repo, {"evaluate.examples": 3})
    toy.commit(repo)
    return repo


@pytest.mark.flows
@pytest.mark.slow
def test_a_run_shows_its_scores_and_report(server: Server, project: Path) -> None:
    """Only what an edit affects has run; the scores are those of the stage."""
    run = server.run_flow(project)
    assert server.flow_run(run)["state_type"] == "COMPLETED", server.flow_run(run)["state"]
    states = server.states(run)
    executed = {states.pop(name) for name in ("evaluate", "package@1")}
    assert executed == {"Executed"} and set(states.values()) == {"Unchanged"}
    assert "Scores of the test set" in server.logs(run)  # which `make flow` shows
    page = project / "data" / "report.html"
    assert server.artifacts(run)["report"] == f"[report.html]({page.as_uri()})"
    scores = json.loads(server.artifacts(run)["scores-report"])
    assert [row["member"] for row in scores] == ["1", "mean"]
    bleu = json.loads((project / "data/evaluation/metrics.json").read_text())["mean"]["bleu"]
    assert float(scores[0]["bleu"]) == bleu and f"{bleu:.2f}" in page.read_text(encoding="utf-8")
