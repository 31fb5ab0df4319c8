"""Files for services, batch systems and containers, tested as far as possible without these."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from pipelines.flows import machine
from tests.flows import toy
from tests.flows.server import Server, end, soon

DEPLOY = toy.ROOT / "deploy"
UNITS = ["convs2s-server.service", "convs2s-worker@.service"]


def commands(path: Path) -> list[str]:
    """Return the arguments after `pipelines.flows.machine` in a file, ignoring comments."""
    lines = [line for line in path.read_text().splitlines() if not line.startswith("#")]
    return re.findall(r"pipelines\.flows\.machine (.*)", "\n".join(lines))


@pytest.mark.parametrize("name", [*UNITS, "worker.slurm", "start-worker.sh"])
def test_their_commands_exist(name: str) -> None:
    """A renamed option would otherwise be noticed only on someone's cluster."""
    found = commands(DEPLOY / name)
    assert len(found) == 1
    words = shlex.split(found[0].replace("%i", "remote").replace('"${1:-remote}"', "remote"))
    worker = {"command": "worker", "pool": "remote"}
    assert vars(machine.parser().parse_args(words)) == ({"command": "server"} if name == UNITS[0] else worker)


def test_the_image_copies_files_that_exist_and_pins_what_it_installs() -> None:
    """Docker would report a missing file only after minutes."""
    text = (DEPLOY / "Dockerfile").read_text().replace("\\\n", " ")
    lines = [line.split() for line in text.splitlines() if line and not line.startswith("#")]
    assert {line[0] for line in lines} == {"FROM", "RUN", "ARG", "COPY", "USER", "VOLUME", "ENTRYPOINT"}
    for line in lines:
        if line[0] == "COPY":
            assert all((toy.ROOT / source).exists() for source in line[1:-1]), line
    installs = [part for part in re.split(r"&&|\n", text) if "pip install" in part]
    assert len(installs) == 2 and all("-c /opt/convs2s/constraints.txt" in part for part in installs)
    version = re.search(r"python:3\.(\d+)-", text)
    assert version is not None and 11 <= int(version[1]) <= 13


@pytest.mark.parametrize("name", ["worker.slurm", "start-worker.sh"])
def test_the_scripts_have_valid_syntax(name: str) -> None:
    """A syntax error would otherwise be noticed only on someone's cluster."""
    subprocess.run(["bash", "-n", str(DEPLOY / name)], check=True)


@pytest.mark.flows
def test_slurm_starts_a_worker_in_its_own_clone(server: Server, repo: Path, tmp_path: Path) -> None:
    """So that no worker checks out commits where somebody works."""
    server.deploy(repo)
    toy.run(tmp_path, "git", "clone", "--quiet", "--bare", str(repo), "shared.git")
    toy.run(repo, "git", "remote", "add", "origin", str(tmp_path / "shared.git"))
    clone = tmp_path / "toy-worker-3"
    env = {**server.env, "SLURM_SUBMIT_DIR": str(repo), "SLURM_ARRAY_TASK_ID": "3"}
    env["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{env['PATH']}"
    command = ["bash", str(DEPLOY / "worker.slurm")]
    process = subprocess.Popen(command, env=env, cwd=tmp_path, start_new_session=True)
    try:
        assert soon(lambda: any(w.endswith(f" {clone.name}") for w in online(server)), 60), online(server)
    finally:
        end(process.pid)
    assert (clone / "dvc.yaml").exists()


def online(server: Server) -> list[str]:
    """Return the names of the workers that have contacted the pool `remote`."""
    found = server.post("work_pools/remote/workers/filter", {})
    return [worker["name"] for worker in found]
