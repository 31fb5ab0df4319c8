"""An edit reruns what it affects and nothing else: the table of the README, held by DVC itself.

The stages are played by a small program on PATH that writes outputs made of all that a stage has declared:
its command, parameters and dependencies. So an output changes whenever one of these does, and what DVC then
runs is the most that an edit can cause.
"""

import json
import os
import re
import shutil
import stat
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from dvc.repo import Repo
from ruamel.yaml import YAML

from tests.presets import rendered

ROOT = Path(__file__).parent.parent
PLAYER = """
import hashlib, json, os, pathlib, sys
from ruamel.yaml import YAML
stage = json.load(open("stages.json"))[os.environ["DVC_STAGE"]]
params = YAML(typ="safe", pure=True).load(open("params.yaml"))
seen = hashlib.sha256(" ".join(sys.argv).encode())
for name in stage["params"]:
    value = params
    for key in name.split("."):
        value = value[key]
    seen.update(json.dumps([name, value]).encode())
for dep in map(pathlib.Path, stage["deps"]):
    for path in sorted(p for p in [dep, *dep.rglob("*")] if p.is_file() and "__pycache__" not in p.parts):
        seen.update(path.read_bytes())
for out in map(pathlib.Path, stage["outs"]):
    file = out if out.suffix else out / "content"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(seen.hexdigest() + out.name)
with open("ran.txt", "a") as log:
    log.write(os.environ["DVC_STAGE"] + "\\n")
"""
AFTER_TRANSLATION = {"replace@1", "replace-ensemble", "evaluate", "package@1"}
TRANSLATION = {"translate@1", "ensemble"} | AFTER_TRANSLATION
TUNING = {"tune@1", "tune-ensemble"} | TRANSLATION
TRAINING = {"train@1"} | TUNING
ENCODING = {"vocabulary", "encode@train", "encode@valid", "candidates"} | TRAINING


def set_param(name: str, value: object) -> Callable[[Path], None]:
    """Return an edit of params.yaml."""

    def edit(repo: Path) -> None:
        yaml, path = YAML(), repo / "params.yaml"
        content = yaml.load(path.read_text(encoding="utf-8"))
        *sections, key = name.split(".")
        target = content
        for section in sections:
            target = target[section]
        assert target[key] != value
        target[key] = value
        with path.open("w", encoding="utf-8") as stream:
            yaml.dump(content, stream)

    return edit


def append(name: str, text: str) -> Callable[[Path], None]:
    """Return an edit of a file."""

    def edit(repo: Path) -> None:
        with (repo / name).open("a", encoding="utf-8") as stream:
            stream.write(text)

    return edit


EDITS: dict[str, tuple[Callable[[Path], None], set[str]]] = {
    "filter.max_words": (set_param("filter.max_words", 100), {"filter", "align"} | ENCODING),
    "vocabulary size": (set_param("vocabulary.source_size", 77), ENCODING),
    "train.dropout": (set_param("train.dropout", 0.33), TRAINING),
    "train.seeds": (
        set_param("train.seeds", [1, 2]),
        {
            "train@2",
            "tune@2",
            "tune-ensemble",
            "translate@2",
            "replace@2",
            "package@2",
            "package@1",
            "ensemble",
            "replace-ensemble",
            "evaluate",
        },
    ),
    "translate.beam_size": (set_param("translate.beam_size", 3), TUNING),
    "translate.alpha": (set_param("translate.alpha", "tuned"), TUNING),
    "tune.alphas": (set_param("tune.alphas", [0.5, 1.0]), TUNING),
    "replace.enabled": (set_param("replace.enabled", True), AFTER_TRANSLATION),
    "the test set": (
        set_param("download.test", [{"kind": "generated", "pairs": 7, "seed": 9, "noise": 0.0}]),
        {"download@test"} | TRANSLATION,
    ),
    "decoding code": (append("convs2s/decode/beam_search.py", "# edited\n"), TUNING),
    "a recorded result": (append("experiments/records/paper.yaml", "# edited\n"), {"results"}),
    "README.md": (append("README.md", "edited\n"), set()),
    "evaluate.examples": (set_param("evaluate.examples", 9), {"evaluate"} | {"package@1"}),
    "train.checkpoint_updates": (set_param("train.checkpoint_updates", 12345), set()),
}


def reproduce() -> list[str]:
    """Run `dvc repro` in this folder; return the stages that ran, in order."""
    Path("ran.txt").unlink(missing_ok=True)
    with Repo() as repo:
        stages = {
            stage.name: {
                "params": [key for dep in stage.deps for key in getattr(dep, "params", [])],
                "deps": [str(dep) for dep in stage.deps if not hasattr(dep, "params")],
                "outs": [str(out) for out in stage.outs],
            }
            for stage in repo.index.stages
        }
        Path("stages.json").write_text(json.dumps(stages))
        repo.reproduce()
    log = Path("ran.txt")
    return log.read_text().split() if log.exists() else []


@pytest.fixture(scope="module")
def reproduced(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Give a copy of the project whose pipeline has been reproduced, by the player."""
    folder = tmp_path_factory.mktemp("project")
    for name in ("convs2s", "pipelines", "data/own", "experiments"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("dvc.yaml", "README.md", ".dvcignore", ".gitignore"):
        shutil.copy(ROOT / name, folder / name)
    (folder / "params.yaml").write_text(rendered("generated"), encoding="utf-8")
    programs = folder / "bin"
    programs.mkdir()
    (programs / "player.py").write_text(PLAYER)
    player = programs / "python"
    player.write_text(f'#!/bin/sh\nexec {sys.executable} {programs / "player.py"} "$@"\n')
    player.chmod(player.stat().st_mode | stat.S_IXUSR)
    old = Path.cwd(), os.environ["PATH"]
    os.chdir(folder)
    os.environ["PATH"] = f"{programs}:{old[1]}"
    try:
        Repo.init(no_scm=True).close()
        assert len(reproduce()) == len(set(json.loads(Path("stages.json").read_text())))
        yield folder
    finally:
        os.chdir(old[0])
        os.environ["PATH"] = old[1]


def test_nothing_runs_twice(reproduced: Path) -> None:
    """A second `dvc repro` has nothing to do."""
    assert reproduce() == []


@pytest.mark.parametrize("name", EDITS)
def test_an_edit_runs_the_stages_that_it_affects_and_no_other(reproduced: Path, name: str) -> None:
    """And undoing it runs nothing: the earlier results come from DVC's cache.

    But for the seeds: DVC cannot list them as dependencies, so tune-ensemble, ensemble and evaluate depend on
    the folder of all seeds, in which the second one remains. The page of results is in git, not in the cache.
    """
    edit, wanted = EDITS[name]
    files = ["params.yaml", "README.md", "convs2s/decode/beam_search.py", "experiments/records/paper.yaml"]
    before = {file: (reproduced / file).read_bytes() for file in files}
    edit(reproduced)
    try:
        assert set(reproduce()) == wanted
    finally:
        for file, content in before.items():
            (reproduced / file).write_bytes(content)
    of_all_seeds = {"tune-ensemble", "ensemble", "replace-ensemble", "evaluate", "package@1"}
    again = {"train.seeds": of_all_seeds, "a recorded result": {"results"}}
    assert set(reproduce()) == again.get(name, set())
    assert reproduce() == []


def test_the_readme_shows_this_table() -> None:
    """Each edit stands in the README with the number of stages that it runs."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    for name, (_, wanted) in EDITS.items():
        row = re.search(rf"^\| `?{re.escape(name)}`? [^|]*\|[^|]*\| (\d+) \|$", text, re.MULTILINE)
        assert row is not None, f"README.md has no row for {name}"
        assert int(row[1]) == len(wanted), f"README.md says {row[1]} stages for {name}, but {len(wanted)} run"
