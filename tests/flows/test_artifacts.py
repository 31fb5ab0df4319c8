"""Artifacts in the UI after a run of the real pipeline at toy size."""

import base64
import json
import logging
import os
import shutil
import time
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from unittest import mock
from uuid import UUID

import matplotlib.image
import pandas as pd
import pytest
from dvc.repo import Repo
from ruamel.yaml import YAML

from pipelines.flows import artifacts
from pipelines.flows.artifacts import stage_key
from pipelines.flows.graph import Stage, read_graph
from tests.flows import toy
from tests.flows.server import Server
from tests.fresh import run_here
from tests.test_end_to_end import toy_params

IN_PLACE = UUID(int=2 << 126)  # of an artifact whose key begins with 2


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A clone of this project with a tiny corpus and a tiny model."""
    folder = tmp_path / "project"
    folder.mkdir()
    for name in ("pipelines", "experiments", "docs"):
        shutil.copytree(toy.ROOT / name, folder / name, ignore=shutil.ignore_patterns("*.pyc"))
    (folder / "convs2s").symlink_to(toy.ROOT / "convs2s")  # with its compiled loops, which take long to make
    for name in (".gitignore", ".dvcignore", "dvc.yaml", "prefect.yaml"):
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
def test_a_run_shows_its_summary_curves_scores_and_report(server: Server, project: Path) -> None:
    """Figures match the files that DVC tracks, whether a stage has run or was up to date."""
    run = server.run_flow(project)
    assert server.flow_run(run)["state_type"] == "COMPLETED", server.flow_run(run)["state"]
    states = server.states(run)
    executed = {states.pop(name) for name in ("evaluate", "package@1")}
    assert executed == {"Executed"} and set(states.values()) == {"Unchanged"}
    assert "Not shown in the UI" not in server.logs(run)
    shown = server.artifacts(run)
    assert shown["2-train-1-curves"]["type"] == "image"
    head, data = shown["2-train-1-curves"]["data"].split(",")
    assert head == "data:image/png;base64"
    assert matplotlib.image.imread(BytesIO(base64.b64decode(data))).std() > 0.01
    table = pd.DataFrame(json.loads(shown["3-evaluate-scores"]["data"]))
    written = pd.read_csv(project / "data" / "evaluation" / "scores.csv", dtype={"member": str})
    pd.testing.assert_frame_equal(table, written, check_dtype=False)
    assert "bleu: `nrefs:1|case:mixed|eff:no|tok:13a" in shown["3-evaluate-scores"]["description"]
    text = shown[artifacts.SUMMARY]["data"]
    assert f"**Completed**: 3 executed, {len(states)} unchanged" in text
    assert "| train@1 | Unchanged |  |" in text and "| evaluate | Executed | 0:" in text
    scores = text.partition("\n```text\n")[2].partition("\n```\n")[0]
    assert scores.startswith("Scores of the test set") and "seed 1" in scores
    assert scores in server.logs(run)  # which `make flow` shows
    assert f"- [2-train-1-curves]({server.address.removesuffix('/api')}/v2/artifacts/artifact/" in text
    on_page = sorted(shown, key=lambda name: str(shown[name]["id"]), reverse=True)
    assert on_page == ["1-summary", "2-train-1-curves", "3-evaluate-scores", "4-report"]
    assert toy.dvc(project, "status") == "Data and pipelines are up to date."
    page = project / "data" / "report.html"
    assert shown["4-report"]["data"] == f"[report.html]({page.as_uri()})"
    assert f"Report: {page.as_uri()}" in server.logs(run)
    bleu = json.loads((project / "data/evaluation/metrics.json").read_text())["mean"]["bleu"]
    assert f"{bleu:.2f}" in page.read_text(encoding="utf-8")


def test_a_failed_training_shows_its_curves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A diverging loss can be seen on the curve."""
    show = mock.Mock(return_value=IN_PLACE)
    monkeypatch.setattr(artifacts, "create_image_artifact", show)
    stage = replace(read_graph(toy.ROOT)["train@1"], root=tmp_path)
    artifacts.show(stage, failed=True)
    assert not show.called  # it failed before its first point
    curve = tmp_path / "data" / "checkpoints" / "1" / "curves" / "train" / "loss.tsv"
    curve.parent.mkdir(parents=True)
    curve.write_text("step\tloss\n50\t7.1\n100\t70.1\n")
    artifacts.show(stage, failed=True)
    (picture,), named = show.call_args
    assert picture.startswith("data:image/png;base64,")
    assert named == {"key": "2-train-1-curves", "description": "Curves of train@1"}


def test_keys_are_valid_and_sorted() -> None:
    """Prefect accepts lower-case letters, digits and hyphens, and sorts artifacts by key."""
    train, evaluate = (read_graph(toy.ROOT)[name] for name in ("train@1", "evaluate"))
    row = replace(train, label="dropout=0.3, seeds=[1]")
    assert stage_key(row, "curves") == "2-train-1-curves-dropout-0-3-seeds-1"
    assert artifacts.SUMMARY < stage_key(train, "curves") < stage_key(evaluate, "scores") < "4-sweep"


def test_an_artifact_is_made_again_until_it_is_in_its_place(monkeypatch: pytest.MonkeyPatch) -> None:
    """The page of a run sorts by id, the highest first, and ids are random."""
    client, make = mock.MagicMock(), mock.Mock(side_effect=[UUID(int=n << 126) for n in (0, 3, 2, 1)])
    monkeypatch.setattr(artifacts, "get_client", client)
    assert artifacts.create(make, "curve", "2-train-1-curves") == IN_PLACE
    deleted = client.return_value.__enter__.return_value.delete_artifact
    assert deleted.call_args_list == [mock.call(UUID(int=0)), mock.call(UUID(int=3 << 126))]


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("Finished in state Running()", None),
        ("Finished in state Completed()", "Finished in state Completed()"),
        (
            """NotReady("Upstream task run '01a20978-e488-7d4f' did not reach a 'COMPLETED' state.")""",
            """NotReady("A stage that it needs has not succeeded.")""",
        ),
    ],
)
def test_the_log_is_in_words_of_the_pipeline(line: str, shown: str | None) -> None:
    """Prefect says that a cancelled run is running, and names the stage that did not succeed by a UUID."""
    record = logging.makeLogRecord({"msg": line})
    assert (record.msg if artifacts.tidy(record) else None) == shown


HALF = {
    "epoch": 2, "max_epochs": 4, "update": 50, "updates": 100, "loss": 2.4831, "gradient_norm": 0.875,
    "learning_rate": 0.25, "tokens_per_second": 11800.6, "seconds_left": 75.2, "validation_perplexity": None,
}  # fmt: skip


def test_progress_is_of_all_epochs_and_begins_with_the_most_important() -> None:
    """The first update of the first epoch is close to 0, the last update of the last epoch is 100."""
    text = "epoch 2 of 4, 0:01:15 left in it, 11,801 tokens/s, loss 2.483, 50 of 100 updates"
    assert artifacts.describe(HALF) == (37.5, text)  # there is no perplexity before the first validation
    assert artifacts.describe(HALF | {"epoch": 4, "update": 100})[0] == 100.0
    assert artifacts.describe(HALF | {"epoch": 1, "update": 0, "updates": 0})[0] == 0.0
    later = artifacts.describe(HALF | {"validation_perplexity": 31.391})
    assert later == (37.5, f"{text}, validation perplexity 31.391")


def test_the_artifact_follows_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file of an earlier training is ignored, and no error of the server stops the stage.

    The log, which has no progress bars, gets a line when one is due.
    """
    shown, logger = list[float](), mock.Mock()
    monkeypatch.setattr(artifacts, "get_run_logger", lambda: logger)
    monkeypatch.setattr(artifacts, "LOG_SECONDS", 0.0)
    create = mock.Mock(side_effect=[ConnectionError(), IN_PLACE])
    monkeypatch.setattr(artifacts, "create_progress_artifact", create)
    monkeypatch.setattr(artifacts, "update_progress_artifact", lambda _, done, __: shown.append(done))
    monkeypatch.setattr(artifacts, "SECONDS", 0.01)
    path = tmp_path / "work" / "progress.json"
    path.parent.mkdir()
    path.write_text(json.dumps(HALF))
    os.utime(path, (1, 1))
    stage = Stage("train@1", "", frozenset(), 1, 1.0, (), "work", {}, "", tmp_path)
    with artifacts.show_progress(stage):
        time.sleep(0.1)
        assert shown == []
        for update in (50, 60, 70):
            path.write_text(json.dumps(HALF | {"update": update}))
            time.sleep(0.1 * (update < 70))
    assert shown == [37.5, 40.0, 42.5]
    lines = [call.args[0].split(",")[:2] for call in logger.info.call_args_list]
    assert lines[0] == ["38%", " epoch 2 of 4"] and lines[-1] == ["42%", " epoch 2 of 4"]
