"""A repository with finished runs."""

import shutil
from pathlib import Path

import pytest
from dvc.repo import Repo

from tests.flows import toy
from tests.report.made import GOOD, make_run

PIPELINE = """
stages:
  evaluate:
    cmd: cp -r made/data .
    deps: [made]
    params: [languages, seeds, tokenize, train, replace, evaluate, package]
    outs: [data/raw, data/filtered, data/trained, data/costs, data/replaced, OTHERS]
    metrics: [data/evaluation/metrics.json]
metrics: [data/filtered/report.json, data/trained/1/metrics.json, data/trained/2/metrics.json]
"""
OTHERS = ("scores.csv", "by_length.csv", "signatures.json", "test_set.json", "pictures")


@pytest.fixture(scope="package")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a repository with a commit of code, one of a run, an experiment, and an edited params.yaml."""
    repo = tmp_path_factory.mktemp("finished")
    make_run(repo / "made", {"train.dropout": 0.1}, {"1": GOOD, "2": GOOD, "ensemble": GOOD})
    shutil.copy(repo / "made" / "params.yaml", repo)
    others = ", ".join(f"data/evaluation/{name}" for name in OTHERS)
    (repo / "dvc.yaml").write_text(PIPELINE.replace("OTHERS", others))
    toy.run(repo, "git", "init", "--quiet")
    Repo.init(str(repo)).close()
    toy.commit(repo)
    toy.dvc(repo, "repro")
    toy.commit(repo)
    shutil.rmtree(repo / "made")
    worse = [line.replace("a", "o") for line in GOOD]
    make_run(repo / "made", {"train.dropout": 0.1}, {"1": GOOD, "2": worse, "ensemble": GOOD})
    toy.set_params(repo, {"train.dropout": 0.2})
    toy.dvc(repo, "repro")
    toy.dvc(repo, "exp", "save", "--name", "more-dropout")
    toy.set_params(repo, {"train.dropout": 0.3})
    return repo
