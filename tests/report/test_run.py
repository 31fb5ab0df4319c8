"""Runs from folders, git revisions and DVC experiments."""

import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from pipelines.report import __main__ as report
from pipelines.report import runs
from pipelines.report.run import open_run
from tests.flows import toy
from tests.report.made import GOOD


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


def test_a_run_has_its_date_and_commit(finished: Path, tmp_path: Path) -> None:
    """Who is handed a report asks when it was made, and from what; an experiment has its commit's."""
    commit = toy.run(finished, "git", "log", "-1", "--format=%h %s").strip()
    origins = [open_run(name, finished, tmp_path).origin for name in ("HEAD", "more-dropout", str(finished))]
    assert [origin.commit for origin in origins] == [commit, f"based on {commit}", f"{commit}, with edits"]
    assert all(re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d", origin.date) for origin in origins)


def test_the_project_may_be_a_subfolder_of_the_repository(finished: Path, tmp_path: Path) -> None:
    """DVC then names the files of a revision from the top."""
    project = tmp_path / "larger" / "project"
    shutil.copytree(finished, project, ignore=shutil.ignore_patterns(".git", "tmp"))
    toy.run(project.parent, "git", "init", "--quiet")
    toy.commit(project)
    run = open_run("HEAD", project, tmp_path / "copy")
    assert [sentence.translation for sentence in run.sentences] == GOOD


@pytest.mark.parametrize("show", [lambda folder: runs.read_rows(folder, 1), lambda _: report.main([])])
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
