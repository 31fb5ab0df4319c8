"""A colleague gets one's own texts by `dvc pull`, and `dvc repro` then finds every stage up to date."""

import hashlib
import json
import shutil
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from dvc.repo import Repo
from dvc.stage import PipelineStage
from ruamel.yaml import YAML

from convs2s.config.load import load_params
from pipelines.check import check_folders, find_unshared
from pipelines.flows.graph import read_graph, up_to_date
from pipelines.preset import render
from pipelines.stages._params import PARAMS
from tests.flows import toy

RAN: list[str] = []
TEXTS = Path("data/own/news")


def play(stage: PipelineStage, **_: Any) -> None:
    """Stand in for a stage's command: write outputs that depend on everything the stage reads."""
    RAN.append(stage.name)
    seen = hashlib.sha256()
    for dep in map(Path, map(str, stage.deps)):
        for path in sorted(path for path in [dep, *dep.rglob("*")] if path.is_file()):
            seen.update(path.read_bytes())
    for out in map(Path, map(str, stage.outs)):
        files = [out / f"{name}.txt" for name in PARAMS] if out.name == "snapshot" else [out / "content"]
        for file in [out] if out.suffix else files:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(seen.hexdigest())


@pytest.fixture
def mine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a clone with the first stages and own texts in data/own/news, where they have run once."""
    folder = tmp_path / "mine"
    (folder / TEXTS).mkdir(parents=True)
    for name in (".gitignore", ".dvcignore", "data/own/README.md"):
        shutil.copy(toy.ROOT / name, folder / name)
    stages = YAML(typ="safe").load(toy.ROOT / "dvc.yaml")["stages"]
    first = {name: stages[name] for name in ("snapshot", "download", "truecase")}
    (folder / "dvc.yaml").write_text(json.dumps({"stages": first}))
    for name in ("train", "valid", "test"):
        (folder / TEXTS / f"{name}.source.txt").write_text(f"{name}\n")
    params = render("own-data", overrides={"download.folder": str(TEXTS)})
    (folder / "params.yaml").write_text(params, encoding="utf-8")
    toy.run(folder, "git", "init", "--quiet")
    Repo.init(str(folder)).close()
    toy.dvc(folder, "remote", "add", "--quiet", "--default", "store", str(tmp_path / "store"))
    monkeypatch.setattr("dvc.stage.run.cmd_run", play)
    toy.dvc(folder, "repro")
    return folder


def publish(folder: Path, name: str) -> Path:
    """Commit and push everything; return a fresh clone that has pulled."""
    toy.commit(folder)
    toy.dvc(folder, "push")
    clone = folder.with_name(name)
    toy.run(folder.parent, "git", "clone", "--quiet", str(folder), name)
    return clone


def note(folder: Path) -> str:
    """Return what the check says on texts that nobody else can get."""
    return find_unshared(load_params(folder / "params.yaml"), folder / "params.yaml")


@pytest.mark.parametrize("outside", [False, True])
def test_a_clone_pulls_the_texts_and_runs_nothing(mine: Path, outside: bool) -> None:
    """Without the step that the note names, the clone has no texts; import-url copies a folder elsewhere."""
    if outside:
        corpora = (mine / TEXTS).rename(mine.with_name("news"))
        toy.set_params(mine, {"download.folder": str(corpora)})
        toy.dvc(mine, "repro")
    said = note(mine)
    missing = publish(mine, "missing")
    toy.dvc(missing, "pull")
    assert not (missing / TEXTS).exists()
    toy.dvc(mine, *said.partition(": dvc ")[2].partition(",")[0].split())
    if outside:
        toy.set_params(mine, {"download.folder": said.partition("download.folder: ")[2]})
        toy.dvc(mine, "repro")
        shutil.rmtree(mine.with_name("news"))
    assert note(mine) == ""
    theirs = publish(mine, "theirs")
    with pytest.raises(FileNotFoundError, match=r"found only .*/news\.dvc.*: dvc pull .*/data/own/news\.dvc"):
        check_folders(load_params(theirs / "params.yaml"), theirs / "params.yaml")
    toy.dvc(theirs, "pull")
    RAN.clear()
    toy.dvc(theirs, "repro")
    assert RAN == ["snapshot"]  # which runs every time
    assert (theirs / TEXTS / "test.source.txt").read_text() == "test\n"
    toy.run(theirs, "git", "diff", "--exit-code")


def test_flows_know_texts_that_dvc_tracks(mine: Path) -> None:
    """They are a parent of the download, so edited texts are recorded before it, and workers pull them."""
    toy.dvc(mine, "add", str(TEXTS))
    tracked = f"{TEXTS}.dvc"
    stages = read_graph(mine)
    assert stages["download@train"].parents == {"snapshot", tracked}
    assert stages[tracked].command == ""
    with mock.patch("pipelines.flows.graph.find_changed", lambda *_: set()):
        assert up_to_date(mine) == stages.keys() - {"snapshot"}
        (mine / TEXTS / "train.source.txt").write_text("edited\n")
        assert not {tracked, "download@train", "truecase"} & up_to_date(mine)
