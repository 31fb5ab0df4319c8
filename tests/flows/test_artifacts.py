"""What the UI shows of a whole run of the real pipeline at toy size."""

import base64
import json
import shutil
from pathlib import Path

import matplotlib.image
import pandas as pd
import pytest
from dvc.repo import Repo
from ruamel.yaml import YAML

from convs2s.text.corpus.files import read_lines
from pipelines.flows import artifacts
from pipelines.flows.artifacts import examples_in_markdown, key, literal
from pipelines.flows.graph import read_graph
from tests.flows import toy
from tests.flows.server import Server
from tests.test_end_to_end import toy_params


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A clone of this project with a tiny corpus and model, two seeds."""
    folder = tmp_path / "project"
    folder.mkdir()
    for name in ("convs2s", "pipelines", "experiments", "docs"):
        shutil.copytree(toy.ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in (".gitignore", ".dvcignore", "dvc.yaml", "prefect.yaml"):
        shutil.copy(toy.ROOT / name, folder / name)
    (folder / "data" / "own").mkdir(parents=True)
    shutil.copy(toy.ROOT / "data" / "own" / "README.md", folder / "data" / "own")
    params = toy_params(tmp_path, "bpe").model_dump(mode="json")
    params["download"]["folder"] = "data/own"
    with (folder / "params.yaml").open("w") as stream:
        YAML().dump(params, stream)
    toy.run(folder, "git", "init", "--quiet")
    Repo.init(str(folder)).close()
    shutil.copy(toy.ROOT / ".dvc" / "config", folder / ".dvc" / "config")
    toy.commit(folder)
    return folder


@pytest.mark.flows
def test_a_run_shows_curves_scores_examples_and_attention(server: Server, project: Path) -> None:
    """Numbers are those of the files that DVC keeps."""
    run = server.run_flow(project)
    assert server.flow_run(run)["state_type"] == "COMPLETED", server.flow_run(run)["state"]
    assert set(server.states(run).values()) == {"Executed"}
    assert "Not shown in the UI" not in server.logs(run)
    shown = server.artifacts(run)
    for name in ("curves-train-1", "curves-train-2", "attention-1", "score-plot"):
        assert shown[name]["type"] == "image"
        head, data = shown[name]["data"].split(",")
        assert head == "data:image/png;base64"
        (project / "picture.png").write_bytes(base64.b64decode(data))
        assert matplotlib.image.imread(project / "picture.png").std() > 0.01
    table = pd.DataFrame(json.loads(shown["scores"]["data"]))
    written = pd.read_csv(project / "data" / "evaluation" / "scores.csv", dtype={"member": str})
    pd.testing.assert_frame_equal(table, written, check_dtype=False)
    assert set(table["member"]) == {"1", "2", "mean", "std", "ensemble"}
    assert "bleu: `nrefs:1|case:mixed|eff:no|tok:13a" in shown["scores"]["description"]
    first = next(iter(read_lines(project / "data" / "evaluation" / "examples.tsv")))
    assert first.startswith("line\tmodel\tsource")
    assert shown["examples"]["data"].count("| source |") >= 3
    perplexity = json.loads((project / "data/trained/1/metrics.json").read_text())["validation_perplexity"]
    assert json.loads(shown["metrics-train-1"]["data"])[0]["validation_perplexity"] == perplexity
    tags = server.tasks(run)["train@1"]["tags"]
    assert {"train", "generated-en-de"} <= set(tags)
    assert toy.dvc(project, "status") == "Data and pipelines are up to date."
    page = project / "data" / "report.html"
    link = next(artifact["data"] for name, artifact in shown.items() if name.endswith("report"))
    assert link == f"[report.html]({page.as_uri()})"
    assert f"Report: {page.as_uri()}" in server.logs(run)
    text = page.read_text(encoding="utf-8")
    assert f"{written.set_index('member').loc['mean', 'bleu']:.2f}" in text
    assert "not up to date" not in text


def test_a_training_that_failed_shows_how_far_it_came(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A loss that runs away is seen on the curve."""
    shown: list[tuple[str, str]] = []
    monkeypatch.setattr(
        artifacts,
        "create_image_artifact",
        lambda url, key, description: shown.append((url[:22], description)),
    )
    stage = read_graph(toy.ROOT)["train@1"]
    artifacts.show_failure(stage, tmp_path, "")
    assert shown == []  # it failed before its first point
    curve = tmp_path / "data" / "checkpoints" / "1" / "curves" / "train" / "loss.tsv"
    curve.parent.mkdir(parents=True)
    curve.write_text("step\tloss\n50\t7.1\n100\t70.1\n")
    artifacts.show_failure(stage, tmp_path, "")
    assert shown == [("data:image/png;base64,", "Curves of train@1 until it failed")]


def test_keys_are_what_prefect_takes() -> None:
    """Small letters, digits and hyphens."""
    assert key("curves", "dropout=0.3, seeds=[1]", "train@1") == "curves-dropout-0-3-seeds-1-train-1"
    assert key("scores", "") == "scores"


def test_examples_show_text_as_it_is() -> None:
    """Markdown in a sentence is text, and a bar does not end its cell."""
    assert literal("a|b *c* <unk> _d_") == r"a\|b \*c\* \<unk\> \_d\_"
    rows = [
        {"line": "7", "model": m, "source": "s|", "hypothesis": f"h{m}", "reference": "r"} for m in ("1", "2")
    ]
    text = examples_in_markdown(pd.DataFrame(rows))
    assert text.splitlines()[4:] == [
        "| | |",
        "|---|---|",
        r"| source | s\| |",
        "| reference | r |",
        "| model 1 | h1 |",
        "| model 2 | h2 |",
    ]
