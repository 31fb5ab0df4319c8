"""Artifacts in the UI after a run of the real pipeline at toy size."""

import json
import shutil
from pathlib import Path

import pandas as pd
import pytest
from dvc.repo import Repo
from ruamel.yaml import YAML

from pipelines.flows.graph import read_graph
from tests.flows import toy
from tests.flows.server import Server
from tests.fresh import run_here
from tests.test_end_to_end import toy_params


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A clone of this project with a tiny corpus and a tiny model."""
    folder = tmp_path / "project"
    folder.mkdir()
    for name in ("pipelines", "experiments", "docs"):
        shutil.copytree(toy.ROOT / name, folder / name, ignore=shutil.ignore_patterns("*.pyc"))
    (folder / "convs2s").symlink_to(toy.ROOT / "convs2s")  # with its compiled loops, which take long to make
    for name in (".gitignore", ".dvcignore", "dvc.yaml", "prefect.yaml", "prefect.toml"):
        shutil.copy(toy.ROOT / name, folder / name)
    for name in ("own", "none"):
        (folder / "data" / name).mkdir(parents=True)
    (folder / "data" / "none" / ".gitkeep").touch()
    params = toy_params(folder / "data", "bpe").model_dump(mode="json")
    params["download"]["folder"] = "data/own"
    params["seeds"], params["evaluate"]["ensembles"] = [1], []
    with (folder / "params.yaml").open("w") as stream:
        YAML().dump(params, stream)
    toy.run(folder, "git", "init", "--quiet")
    Repo.init(str(folder)).close()
    shutil.copy(toy.ROOT / ".dvc" / "config", folder / ".dvc" / "config")
    for stage in read_graph(folder).values():  # in this process, since imports take longer than the work
        run_here(stage.command, folder)
    toy.dvc(folder, "commit", "--force")
    toy.set_params(folder, {"evaluate.examples": 3})
    toy.commit(folder)
    return folder


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
