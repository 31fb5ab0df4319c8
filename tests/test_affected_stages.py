"""An edit reruns what it affects and nothing else: the table of docs/parameters.md, held by DVC itself.

The stages are played by a small program on PATH that writes outputs made of all that a stage has declared:
its command, parameters and dependencies. So an output changes whenever one of these does, and what DVC then
runs is the most that an edit can cause. Only stage code is the real one.
"""

import contextlib
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

from pipelines.stages import code
from tests.presets import rendered

ROOT = Path(__file__).parent.parent
PACKAGES = (Path("convs2s"), Path("pipelines/stages"))
CODE = ["decode/beam_search.py", "text/words/tokenization.py", "model/seq2seq.py"]
FILES = ["params.yaml", "README.md", *(f"convs2s/{name}" for name in CODE)]
PLAYER = """
import hashlib, json, os, pathlib, sys
name = os.environ["DVC_STAGE"]
stage = json.load(open("stages.json"))[name]
with open("ran.txt", "a") as log:
    log.write(name + "\\n")
if name == "code":
    os.execv(stage["python"], [stage["python"], *sys.argv[1:]])
seen = hashlib.sha256(json.dumps([sys.argv, stage["params"]]).encode())
for dep in map(pathlib.Path, stage["deps"]):
    for path in sorted(p for p in [dep, *dep.rglob("*")] if p.is_file()):
        seen.update(path.read_bytes())
for out in map(pathlib.Path, stage["outs"]):
    file = out if out.suffix else out / "content"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(seen.hexdigest() + out.name)
"""
AFTER_TRANSLATION = {"replace@1", "replace-ensemble", "evaluate", "package@1"}
TRANSLATION = {"translate@1", "ensemble"} | AFTER_TRANSLATION
TUNING = {"tune@1", "tune-ensemble"} | TRANSLATION
TRAINING = {"train@1"} | TUNING
FILTERING = {"filter", "align"}
ENCODING = {"vocabulary", "encode@train", "encode@valid", "candidates"} | TRAINING


TOKENIZATION = (
    {"code", "truecase", "tokenize@train", "tokenize@valid", "tokenize@development"} | FILTERING | ENCODING
)


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
    "filter.max_words": (set_param("filter.max_words", 100), FILTERING | ENCODING),
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
    "decoding code": (append("convs2s/decode/beam_search.py", "EDITED = 1\n"), {"code"} | TUNING),
    "the detokenizer": (append("convs2s/text/words/tokenization.py", "EDITED = 1\n"), TOKENIZATION),
    "a docstring": (append("convs2s/model/seq2seq.py", '"""Edited."""\n# Edited.\n'), {"code"}),
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
                "python": sys.executable,
                "params": [dep.read_params() for dep in stage.deps if hasattr(dep, "read_params")],
                "deps": [str(dep) for dep in stage.deps if not hasattr(dep, "params")],
                "outs": [str(out) for out in stage.outs],
            }
            for stage in repo.index.stages
        }
        Path("stages.json").write_text(json.dumps(stages, default=str))
        repo.reproduce()
    log = Path("ran.txt")
    return log.read_text().split() if log.exists() else []


@pytest.fixture(scope="module")
def reproduced(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Give a copy of the project whose pipeline has been reproduced, by the player."""
    folder = tmp_path_factory.mktemp("project")
    for name in ("convs2s", "pipelines", "data/own"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("dvc.yaml", "README.md", ".dvcignore", ".gitignore"):
        shutil.copy(ROOT / name, folder / name)
    (folder / "params.yaml").write_text(rendered("generated"), encoding="utf-8")
    programs = folder / "bin"
    programs.mkdir()
    (programs / "player.py").write_text(PLAYER)
    player = programs / "python"
    player.write_text(f'#!/bin/sh\nexec {sys.executable} -S -E {programs / "player.py"} "$@"\n')
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


@contextlib.contextmanager
def edited(repo: Path, edit: Callable[[Path], None]) -> Iterator[None]:
    """Edit a file of the project, and put it back at the end."""
    before = {file: (repo / file).read_bytes() for file in FILES}
    edit(repo)
    try:
        yield
    finally:
        for file, content in before.items():
            (repo / file).write_bytes(content)


@pytest.mark.parametrize("name", EDITS)
def test_an_edit_runs_the_stages_that_it_affects_and_no_other(reproduced: Path, name: str) -> None:
    """With everything else as it was."""
    edit, wanted = EDITS[name]
    shutil.copytree("data", "before")
    shutil.copy("dvc.lock", "dvc.lock.before")
    try:
        with edited(reproduced, edit):
            assert set(reproduce()) == wanted
    finally:
        shutil.rmtree("data")
        Path("before").rename("data")
        Path("dvc.lock.before").rename("dvc.lock")


@pytest.mark.parametrize("name", ["replace.enabled", "train.seeds", "decoding code"])
def test_undoing_an_edit_runs_nothing(reproduced: Path, name: str) -> None:
    """The earlier results come from DVC's cache.

    But for the seeds: DVC cannot list them as dependencies, so tune-ensemble, ensemble and evaluate depend on
    the folder of all seeds, in which the second one remains.
    """
    with edited(reproduced, EDITS[name][0]):
        reproduce()
    of_all_seeds = {"tune-ensemble", "ensemble", "replace-ensemble", "evaluate", "package@1"}
    assert set(reproduce()) == (of_all_seeds if name == "train.seeds" else set())
    assert reproduce() == []


@pytest.mark.parametrize("step", [40, pytest.param(1, marks=pytest.mark.slow)])
def test_every_module_makes_the_stages_stale_that_can_execute_it(reproduced: Path, step: int) -> None:
    """By `dvc status`, after stage code, and no other stage; one changed statement in each module in turn.

    An alias of a type is no statement that counts in a module that only declares the schema of params.yaml.
    """
    modules = {path for package in PACKAGES for path in package.rglob("*.py")}
    digests = {path.stem: path.read_text() for path in Path("data/code").iterdir()}
    for path in sorted(modules)[::step]:
        name = ".".join(path.with_suffix("").parts).removesuffix(".__init__")
        before = path.read_text(encoding="utf-8")
        path.write_text(before + f"\nEDITED = {'int' if 'config' in path.parts else 1}\n", encoding="utf-8")
        code.run(*PACKAGES, Path("data/code"))
        with Repo() as repo:
            stale = {found.split("@")[0] for found in repo.status()} - {"code"}
            wanted = {
                item.name.split("@")[0]
                for item in repo.index.stages
                for stage in item.cmd.split()[3:4]
                if f" {name}\n" in digests.get(stage, "")
            }
        path.write_text(before, encoding="utf-8")
        assert stale == wanted, name
    code.run(*PACKAGES, Path("data/code"))
    with Repo() as repo:
        assert repo.status() == {}


def test_the_docs_show_this_table() -> None:
    """Each edit is in docs/parameters.md with the number of stages that it runs."""
    text = (ROOT / "docs" / "parameters.md").read_text(encoding="utf-8")
    for name, (_, wanted) in EDITS.items():
        row = re.search(rf"^\| `?{re.escape(name)}`? [^|]*\|[^|]*\| (\d+) \|$", text, re.MULTILINE)
        assert row is not None, f"docs/parameters.md has no row for {name}"
        assert int(row[1]) == len(wanted), (
            f"docs/parameters.md has {row[1]} for {name}, but {len(wanted)} run"
        )
