"""A small repository with the real DAG, the real stages and a toy corpus, and the hashes of its contents."""

import hashlib
import json
import shutil
from pathlib import Path
from typing import Any

from dvc.repo import Repo
from ruamel.yaml import YAML

from convs2s.config.params import Params
from pipelines.repair import repair
from tests.corpus import pairs, with_pairs
from tests.train.tiny import tiny_params

ROOT = Path(__file__).parents[2]
PAIRS, TEST_PAIRS, VOCABULARY = 60, 6, 170
END = ("END", "ENDE")
"""The last pair of training and test texts, which tests may edit."""


def toy_params(folder: Path) -> Params:
    """Write a corpus; return parameters that give every stage something to do, but not much."""
    params = tiny_params(folder, max_epochs=2, batch_sentences=16, max_tokens=400, checkpoint_updates=1)
    train, test = pairs(PAIRS), pairs(TEST_PAIRS, start=PAIRS)
    params = with_pairs(params, folder / "data" / "own", [*train, END], [*test, END])
    sizes = {"joint": True, "source_size": VOCABULARY, "target_size": VOCABULARY}
    return params.model_copy(
        update={
            "download": params.download.model_copy(update={"folder": "data/own"}),
            "tokenize": params.tokenize.model_copy(update={"truecase": True}),
            "vocabulary": params.vocabulary.model_copy(update=sizes),
            "translate": params.translate.model_copy(update={"beam_size": 2}),
            "evaluate": params.evaluate.model_copy(update={"heat_maps": 0}),
            "model": params.model.model_copy(update={"max_positions": 256}),
        }
    )


def make(folder: Path) -> Path:
    """Make the repository, in which nothing has run yet."""
    folder.mkdir(parents=True)
    source = folder.with_name("source")  # shared by all, so that edits during the run disturb none
    for name in ("convs2s", "pipelines"):
        if not (source / name).exists():
            shutil.copytree(ROOT / name, source / name, ignore=shutil.ignore_patterns("__pycache__"))
        (folder / name).symlink_to(source / name)
    for name in ("dvc.yaml", ".dvcignore"):
        shutil.copy(ROOT / name, folder)
    params = toy_params(folder)
    with (folder / "params.yaml").open("w", encoding="utf-8") as stream:
        YAML(typ="safe").dump(params.model_dump(mode="json"), stream)
    Repo.init(str(folder), no_scm=True).close()
    (folder / ".dvc" / "config").write_text("[core]\n no_scm = true\n analytics = false\n")
    repair(folder)  # keeps DVC's databases in the repository, so that a case can damage them as well
    return folder


def copy(base: Path, folder: Path) -> Path:
    """Copy a repository."""
    shutil.copytree(base, folder, symlinks=True)
    repair(folder)
    return folder


def lock(folder: Path) -> dict[str, Any]:
    """Return the stages of dvc.lock."""
    return dict(YAML(typ="safe").load((folder / "dvc.lock").read_text(encoding="utf-8"))["stages"])


def forget(folder: Path, *names: str) -> None:
    """Make DVC run stages again: remove their outputs, their entries in dvc.lock, and the run cache."""
    stages = lock(folder)
    for name in names:
        for out in stages.pop(name)["outs"]:
            path = folder / out["path"]
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    shutil.rmtree(folder / ".dvc" / "cache" / "runs", ignore_errors=True)
    with (folder / "dvc.lock").open("w", encoding="utf-8") as stream:
        YAML(typ="safe").dump({"schema": "2.0", "stages": stages}, stream)


def outputs(folder: Path) -> dict[str, str]:
    """Return the hash of each output file, and of each stage's entry in dvc.lock.

    Returns:
        By path, or by stage: entries are hashed one by one, because their order is that of the runs.
    """
    found = {name: digest(json.dumps(stage, sort_keys=True).encode()) for name, stage in lock(folder).items()}
    for stage in lock(folder).values():
        for out in stage["outs"]:
            path = folder / out["path"]
            for file in [path] if path.is_file() else sorted(p for p in path.rglob("*") if p.is_file()):
                found[str(file.relative_to(folder))] = digest(file.read_bytes())
    return found


def digest(content: bytes) -> str:
    """Return a hash."""
    return hashlib.sha256(content).hexdigest()
