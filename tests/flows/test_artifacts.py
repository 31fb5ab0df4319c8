"""Artifacts in the UI after a run of the real pipeline at toy size."""

import json
import shutil
from pathlib import Path

import pandas as pd
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
    params["seeds"], params["evaluate"]["ensembles"] = [1], []
    with (repo / "params.yaml").open("w") as stream:
        YAML().dump(params, stream)
    for stage in read_graph(repo).values():  # in this process, since imports take longer than the work
        run_here(stage.command, repo)
    toy.dvc(repo, "commit", "--force")
    toy.set_params(repo, {"evaluate.examples": 3})
    toy.commit(repo)
    return repo


@pytest.mark.flows
def test_a_run_shows_its_scores_and_report(server: Server, project: Path) -> None:
    """Figures match the files that DVC tracks, and only what an edit affects has run."""
    run = server.run_flow(project)
    assert server.flow_run(run)["state_type"] == "COMPLETED", server.flow_run(run)["state"]
    states = server.states(run)
    executed = {states.pop(name) for name in ("evaluate", "package@1")}
    assert executed == {"Executed"} and set(states.values()) == {"Unchanged"}
    shown = server.artifacts(run)
    table = pd.DataFrame(json.loads(shown["evaluate-scores"]["data"]))
    written = pd.read_csv(project / "data" / "evaluation" / "scores.csv", dtype={"member": str})
    pd.testing.assert_frame_equal(table, written, check_dtype=False)
    assert "bleu: `nrefs:1|case:mixed|eff:no|tok:13a" in shown["evaluate-scores"]["description"]
    assert "Scores of the test set" in server.logs(run)  # which `make flow` shows
    assert toy.dvc(project, "status") == "Data and pipelines are up to date."
    page = project / "data" / "report.html"
    assert shown["report"]["data"] == f"[report.html]({page.as_uri()})"
    bleu = json.loads((project / "data/evaluation/metrics.json").read_text())["mean"]["bleu"]
    assert f"{bleu:.2f}" in page.read_text(encoding="utf-8")
