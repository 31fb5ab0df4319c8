"""A small repository with the flows' code and fake stages, so that tests of flows take seconds."""

import contextlib
import io
import json
import logging
import os
import shlex
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from unittest import mock

from dvc.cli import main
from dvc.repo import Repo
from ruamel.yaml import YAML

from tests.presets import rendered

ROOT = Path(__file__).parent.parent.parent

# Plays a stage: behaves as behave.json says, notes when it ran, and keeps a checkpoint while it works.
PLAYER = """
import hashlib, json, os, pathlib, sys, time
name, behaviors = os.environ["DVC_STAGE"], pathlib.Path("behave.json")
behave = json.loads(behaviors.read_text()).get(name, {}) if behaviors.exists() else {}
work = pathlib.Path("data/checkpoints") / name
work.mkdir(parents=True, exist_ok=True)
resumed = len([path for path in work.iterdir() if path.name.isdigit()])
(work / str(resumed)).write_text("checkpoint")
def note(what):
    with open("notes.jsonl", "a") as out:
        share = [os.environ.get(name) for name in ("CUDA_VISIBLE_DEVICES", "OMP_NUM_THREADS")]
        out.write(json.dumps([name, what, time.time(), os.getpid(), *share]) + "\\n")
note(f"start {resumed}")
if behave.get("fails", 0) > resumed:
    sys.exit("toy: CUDA error: no device")
begin = time.time()
while time.time() - begin < behave.get("seconds", 0):
    print(f"\\repoch 1:  10%|#         | 1/10 [00:01<00:09,  1.0update/s]", end="", flush=True)
    time.sleep(0.1)
seen = hashlib.sha256(pathlib.Path("params.yaml").read_bytes() if name == "evaluate" else b"")
for path in sorted(p for dep in sys.argv[2:] for p in pathlib.Path(dep).rglob("*") if p.is_file()):
    seen.update(path.read_bytes())
seen.update(sys.argv[1].encode())
out = pathlib.Path(sys.argv[1])
out.parent.mkdir(parents=True, exist_ok=True)
if out.suffix:
    score = int(seen.hexdigest()[:4], 16) / 1000
    out.write_text(json.dumps({"bleu": score, "mean": {"bleu_tokenized": score}}))
else:
    out.mkdir(exist_ok=True)
    (out / "content").write_text(seen.hexdigest() + os.environ.get("TOY", "") + sys.argv[-1])
note("end")
"""
PIPELINE = """
stages:
  download:
    cmd: python toy.py data/raw
    params: [download.train]
    outs: [data/raw]
    meta: {retries: [0, 0]}
  align:
    cmd: python toy.py data/alignment data/raw
    deps: [data/raw]
    params: [align]
    outs: [data/alignment]
    meta: {gpus: 1, idle_without: {align.backend: fast_align}}
  train:
    matrix: {seed: "${seeds}"}
    cmd: >-
      python toy.py data/trained/${item.seed} data/raw
      dropout-${train.dropout}-${model.source_positions}-${model.target_positions}
    deps: [data/raw]
    params: [train.dropout, model.source_positions, model.target_positions]
    outs: ["data/trained/${item.seed}"]
    meta: {gpus: 1, work: "data/checkpoints/train@${item.seed}", retries: [0]}
  evaluate:
    cmd: python toy.py data/evaluation/metrics.json data/trained data/alignment
    deps: [data/trained, data/alignment]
    params: [evaluate, seeds]
    metrics: [data/evaluation/metrics.json]
"""
NAMES = ["download", "align", "train@1", "train@2", "evaluate"]
IDENTITY = {f"GIT_{role}_{part}": "toy" for role in ("AUTHOR", "COMMITTER") for part in ("NAME", "EMAIL")}


def python_path(folder: Path) -> str:
    """Return a PYTHONPATH with the flows' code of a repository, and the library of this tree."""
    return os.pathsep.join(map(str, (folder, ROOT)))


def run(folder: Path, *command: str) -> str:
    """Run a program in a folder; return its output."""
    env = {**os.environ, **IDENTITY, "DVC_NO_ANALYTICS": "1"}
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.strip()


def dvc(folder: Path, *arguments: str) -> str:
    """Run a DVC command in this process, since starting DVC takes longer than its work; return its output."""
    out = io.StringIO()
    env = {**IDENTITY, "DVC_NO_ANALYTICS": "1", "DVC_TEST": "1"}  # DVC_TEST: leave sys.stdout alone
    with contextlib.ExitStack() as undone:
        undone.enter_context(contextlib.chdir(folder))
        undone.enter_context(mock.patch.dict(os.environ, env))
        undone.enter_context(contextlib.redirect_stdout(out))
        for handler in logging.getLogger("dvc").handlers:
            undone.enter_context(mock.patch.object(handler, "stream", out))
        status = main(list(arguments))
    assert status == 0, out.getvalue()
    return out.getvalue().strip()


def make(folder: Path) -> Path:
    """Create the repository, with two seeds and a first commit."""
    folder.mkdir(parents=True)
    # What is compiled stays so; what another process is writing there has a number after .pyc.
    shutil.copytree(ROOT / "pipelines", folder / "pipelines", ignore=shutil.ignore_patterns("*.pyc.*"))
    for name in (".gitattributes", ".gitignore", ".dvcignore", "prefect.yaml", "prefect.toml"):
        shutil.copy(ROOT / name, folder / name)
    (folder / "params.yaml").write_text(rendered("tatoeba-en-de"), encoding="utf-8")
    (folder / "deploy").mkdir()
    (folder / "data" / "own").mkdir(parents=True)
    for name in ("automation.yaml", "failure-notice.yaml"):
        shutil.copy(ROOT / "deploy" / name, folder / "deploy")
    with (folder / ".gitignore").open("a") as stream:
        stream.write("/notes.jsonl\n/behave.json\n")
    set_params(folder, {"seeds": [1, 2], "download.folder": "data/own"})
    (folder / "toy.py").write_text(PLAYER)
    (folder / "dvc.yaml").write_text(PIPELINE)
    run(folder, "git", "init", "--quiet", "--initial-branch", "main")
    Repo.init(str(folder)).close()
    shutil.copy(ROOT / ".dvc" / "config", folder / ".dvc" / "config")
    commit(folder)
    return folder


def commit(folder: Path) -> None:
    run(folder, "git", "add", "--all")
    run(folder, "git", "commit", "--quiet", "--message", "toy")


def set_params(folder: Path, values: dict[str, Any]) -> None:
    """Edit values of params.yaml, each a key of a section or without one."""
    yaml = YAML()
    path = folder / "params.yaml"
    content = yaml.load(path.read_text(encoding="utf-8"))
    for name, value in values.items():
        section, _, key = name.rpartition(".")
        (content[section] if section else content)[key] = value
    with path.open("w", encoding="utf-8") as stream:
        yaml.dump(content, stream)


def behave(folder: Path, **stages: dict[str, Any]) -> None:
    """Set the behavior of stages: how many seconds they take, how often they fail."""
    (folder / "behave.json").write_text(
        json.dumps({name.replace("_", "@"): how for name, how in stages.items()})
    )


def notes(folder: Path) -> list[list[Any]]:
    """Return the notes of the fake stages: stage, event, time, process, its GPUs and threads."""
    path = folder / "notes.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def write_program(path: Path, text: str) -> None:
    """Write a shell script that acts as a program; its folder need not exist."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


def with_gpus(folder: Path, count: int, mig: Sequence[str] = ()) -> str:
    """Put a program that acts as nvidia-smi into a folder; return a PATH that begins there.

    The first of its GPUs has MIG devices with these UUIDs.
    """
    gpus = [f"{number}, GPU-{number}f6c0a11-0000" for number in range(count)]
    listed = [f"GPU {gpus[0].replace(', ', ': A100 (UUID: ')})"]
    listed += [f"  MIG 1g.5gb Device 0: (UUID: {uuid})" for uuid in mig]
    answers = [shlex.join(["printf", "%s\\n", *lines]) for lines in (listed, gpus)]
    write_program(folder / "nvidia-smi", f'if [ "$1" = -L ]; then {answers[0]}; else {answers[1]}; fi')
    return f"{folder}{os.pathsep}{os.environ['PATH']}"


def ran(folder: Path) -> list[str]:
    """Return the stages that have run to completion, in order."""
    return [note[0] for note in notes(folder) if note[1] == "end"]
