"""A small repository with the real DAG, the real stages and a toy corpus, run once without faults."""

import importlib
import shutil
from pathlib import Path

from dvc.repo import Repo
from ruamel.yaml import YAML

from convs2s.config.params import Params
from pipelines.repair import repair
from pipelines.stages.__main__ import stages
from tests.corpus import pairs, with_pairs
from tests.faults import forked, results
from tests.train.tiny import ROOT, tiny_params

PAIRS, TEST_PAIRS, VOCABULARY = 60, 6, 170
END = ("END", "ENDE")
"""The last pair of training and test texts, which tests may edit."""


def make_base(folder: Path) -> Path:
    """Make the repository in a folder and run the DAG; return it."""
    for name in stages():  # so that no fork has to
        importlib.import_module(f"pipelines.stages.{name}")
    base = make(folder / "base")
    assert repro(base) == 0, base.with_suffix(".log").read_text()[-3000:]
    return base


def toy_params(folder: Path) -> Params:
    """Write a corpus; return parameters that give every stage something to do, but not much."""
    params = tiny_params(folder, max_epochs=2, batch_sentences=16, max_tokens=400, checkpoint_updates=1)
    train, test = pairs(PAIRS), pairs(TEST_PAIRS, start=PAIRS)
    content = with_pairs(params, folder / "data" / "own", [*train, END], [*test, END]).model_dump(mode="json")
    content["download"]["folder"] = "data/own"
    content["tokenize"]["truecase"] = True
    content["filter"]["max_overlap"] = None  # of END
    content["vocabulary"] |= {"joint": True, "source_size": VOCABULARY, "target_size": VOCABULARY}
    content["translate"]["beam_size"] = 2
    content["evaluate"]["heat_maps"] = 0
    content["model"]["max_positions"] = 256
    return Params.model_validate(content)


def make(folder: Path) -> Path:
    """Make the repository, in which nothing has run yet."""
    folder.mkdir(parents=True)
    for name in ("convs2s", "pipelines"):
        (folder / name).symlink_to(ROOT / name)
    for name in ("dvc.yaml", ".dvcignore"):
        shutil.copy(ROOT / name, folder)
    (folder / "data" / "none").mkdir(parents=True)
    yaml = YAML(typ="safe")
    yaml.default_flow_style = False  # a value on each line, for edits
    values = toy_params(folder).model_dump(mode="json")  # which leaves another params.yaml in the folder
    with (folder / "params.yaml").open("w", encoding="utf-8") as stream:
        yaml.dump(values, stream)
    Repo.init(str(folder), no_scm=True).close()
    (folder / ".dvc" / "config").write_text("[core]\n no_scm = true\n analytics = false\n")
    return folder


def copy(base: Path, folder: Path) -> Path:
    """Copy a repository."""
    shutil.copytree(base, folder, symlinks=True)
    repair(folder)
    return folder


def repro(folder: Path, hooks: forked.Hooks | None = None, *options: str) -> int:
    """Run `make repro` without the report: repair, then DVC; return its exit status."""
    repair(folder)
    return forked.start(folder, hooks, *options).wait()


def forget(folder: Path, stage: str) -> None:
    """Make DVC run a stage again: remove its outputs, its entry in dvc.lock, and the run cache."""
    stages = results.lock(folder)
    for out in stages.pop(stage)["outs"]:
        path = folder / out["path"]
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    shutil.rmtree(folder / ".dvc" / "cache" / "runs", ignore_errors=True)
    with (folder / "dvc.lock").open("w", encoding="utf-8") as stream:
        YAML(typ="safe").dump({"schema": "2.0", "stages": stages}, stream)
