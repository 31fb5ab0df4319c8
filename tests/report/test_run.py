"""Runs from folders, git revisions and DVC experiments."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from dvc.repo import Repo

from pipelines.report import __main__ as report
from pipelines.report import runs
from pipelines.report.run import open_run
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
metrics: [data/filtered/report.json, data/trained/1/metrics.json]
"""
OTHERS = ("scores.csv", "by_length.csv", "signatures.json", "test_set.json", "pictures")


@pytest.fixture(scope="module")
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


@pytest.mark.parametrize(("name", "dropout"), [("HEAD", 0.1), ("more-dropout", 0.2)])
def test_a_revision_and_an_experiment_are_read_from_the_cache(
    finished: Path, tmp_path: Path, name: str, dropout: float
) -> None:
    """Parameters, translations and costs are those of the run, not of the edited workspace."""
    run = open_run(name, finished, tmp_path)
    assert (run.name, run.params["train.dropout"]) == (name, dropout)
    assert [sentence.translation for sentence in run.sentences] == GOOD
    assert [run.json(f"costs/{seed}.json")["CPU core-hours"] for seed in "12"] == [1.0, 1.0]
    assert all((run.folder / f"data/trained/{seed}/curves/train/loss.tsv").is_file() for seed in "12")


def test_the_project_may_be_a_subfolder_of_the_repository(finished: Path, tmp_path: Path) -> None:
    """DVC then names the files of a revision from the top."""
    project = tmp_path / "larger" / "project"
    shutil.copytree(finished, project, ignore=shutil.ignore_patterns(".git", "tmp"))
    toy.run(project.parent, "git", "init", "--quiet")
    toy.commit(project)
    run = open_run("HEAD", project, tmp_path / "copy")
    assert [sentence.translation for sentence in run.sentences] == GOOD


@pytest.mark.parametrize("show", [lambda folder: runs.read_table(folder, "1"), lambda _: report.main([])])
def test_a_merge_comes_first(
    finished: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    show: Callable[[Path], object],
) -> None:
    """DVC shows nothing for a dvc.lock with conflicts, or the parser's words."""
    project = tmp_path / "project"
    shutil.copytree(finished, project, ignore=shutil.ignore_patterns("tmp"))
    with (project / "dvc.lock").open("a") as lock:
        lock.write("<<<<<<< HEAD\na: 1\n=======\na: 2\n>>>>>>> other\n")
    monkeypatch.chdir(project)
    try:
        show(project)
        message = capsys.readouterr().err
    except ValueError as error:
        message = str(error)
    assert "dvc.lock: expected no conflicts, found those of a merge" in message


def test_make_runs_shows_scores_and_changed_parameters(finished: Path) -> None:
    """`make runs` picks them from all columns; a run is a row, or a column where more parameters differ."""
    table = runs.read_table(finished, "2")
    titles, *rows = [line.split(",") for line in table.splitlines()]
    scores = [f"{model}.{score}" for model in ("mean", "ensemble") for score in ("bleu", "chrf")]
    assert titles == ["Experiment", "rev", *scores, "validation_perplexity", "train.dropout"]
    dropouts = [row[-1] for row in rows]
    assert dropouts == ["0.3", "0.1", "0.2", "0.1"]
    shown = runs.show(table).splitlines()
    assert shown[0].split()[:2] == ["run", "workspace"]
    assert shown[-1].split() == ["train.dropout", *dropouts]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("HAED", r"^HAED: found neither a folder nor a revision \("),
        ("HEAD~1", r"HEAD~1: this revision has no dvc\.lock, .*git add dvc\.lock"),
        ("HEAD", r"or its outputs are not in DVC's cache"),
    ],
)
def test_a_run_that_is_not_there_is_refused(finished: Path, tmp_path: Path, name: str, message: str) -> None:
    """The name may be a typo, a commit before the first run, or a run of another machine."""
    copy = Path(shutil.copytree(finished, tmp_path / "copy", symlinks=True))
    shutil.rmtree(copy / ".dvc" / "cache")
    with pytest.raises(ValueError, match=message):
        open_run(name, copy, tmp_path)
