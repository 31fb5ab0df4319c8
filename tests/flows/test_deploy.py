"""Files for services, batch systems and containers, tested as far as possible without these."""

import os
import re
import subprocess
from pathlib import Path

import pytest

from pipelines.flows import machine
from tests.flows import toy

DEPLOY = toy.ROOT / "deploy"


@pytest.mark.parametrize(
    ("name", "command"),
    [
        ("convs2s-server.service", ["server"]),
        ("convs2s-worker@.service", ["worker", "%i"]),
        ("worker.slurm", ["worker", "remote"]),
        ("start-worker.sh", ["worker", '"${1:-remote}"']),
    ],
)
def test_their_commands_exist(name: str, command: list[str]) -> None:
    """A renamed option, or wrong syntax, would otherwise be noticed only on someone's cluster."""
    text = (DEPLOY / name).read_text()
    assert re.findall(r"^[^#\n]*pipelines\.flows\.machine (.*)", text, re.MULTILINE) == [" ".join(command)]
    machine.parser().parse_args([command[0], *["remote"] * (len(command) > 1)])
    if not name.endswith(".service"):
        subprocess.run(["bash", "-n", str(DEPLOY / name)], check=True)


def test_the_image_copies_files_that_exist() -> None:
    """Docker would report a missing file only after minutes."""
    lines = (DEPLOY / "Dockerfile").read_text().replace("\\\n", " ").splitlines()
    copied = [name for line in lines if line.startswith("COPY") for name in line.split()[1:-1]]
    assert copied and all((toy.ROOT / name).exists() for name in copied)


def test_slurm_starts_a_worker_in_its_own_clone(repo: Path, tmp_path: Path) -> None:
    """So that no worker checks out commits where somebody works; here a script acts as Python."""
    toy.run(tmp_path, "git", "clone", "--quiet", "--bare", str(repo), "shared.git")
    toy.run(repo, "git", "remote", "add", "origin", str(tmp_path / "shared.git"))
    for folder, name, text in [
        (".venv/bin", "python", '#!/bin/sh\necho "$PWD" "$PYTHONPATH" "$@"\n'),
        (".prefect", "password", "convs2s:opensesame\n"),
    ]:
        (repo / folder).mkdir(parents=True)
        (repo / folder / name).write_text(text)
        (repo / folder / name).chmod(0o755)
    env = {**os.environ, "SLURM_SUBMIT_DIR": str(repo), "SLURM_ARRAY_TASK_ID": "3"}
    said = subprocess.check_output(["bash", str(DEPLOY / "worker.slurm")], env=env, cwd=tmp_path, text=True)
    clone = tmp_path / "toy-worker-3"
    assert said.split() == [str(clone), str(clone), "-m", "pipelines.flows.machine", "worker", "remote"]
    assert (clone / "dvc.yaml").exists()
    assert (clone / ".prefect" / "password").stat().st_mode & 0o777 == 0o600
