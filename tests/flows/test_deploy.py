"""Files for services, batch systems, containers and clusters, tested as far as possible without these."""

import os
import re
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest
from dvc.config import Config
from dvc.dirs import system_config_dir
from ruamel.yaml import YAML

from pipelines.flows import machine, process_guard
from tests.flows import toy
from tests.flows.server import soon

DEPLOY = toy.ROOT / "deploy"
MANIFESTS = list(YAML(typ="safe", pure=True).load_all(DEPLOY / "kubernetes.yaml"))


@pytest.mark.parametrize(
    ("name", "command"),
    [
        ("convs2s-server.service", ["server"]),
        ("convs2s-worker@.service", ["worker", "%i"]),
        ("worker.slurm", ["worker", "remote", "&"]),
        ("start-worker.sh", ["worker", '"${1:-remote}"', "&"]),
    ],
)
def test_their_commands_exist(name: str, command: list[str]) -> None:
    """A renamed option, or wrong syntax, would otherwise be noticed only on someone's cluster."""
    text = (DEPLOY / name).read_text()
    assert re.findall(r"^[^#\n]*pipelines\.flows\.machine (.*)", text, re.MULTILINE) == [" ".join(command)]
    machine.parser().parse_args([command[0], *["remote"] * (len(command) > 1)])
    if not name.endswith(".service"):
        subprocess.run(["bash", "-n", str(DEPLOY / name)], check=True)


@pytest.fixture
def slurm(repo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A clone to submit from, in which scripts act as Python and Slurm; return the file that they write."""
    toy.run(tmp_path, "git", "clone", "--quiet", "--bare", str(repo), "shared.git")
    toy.run(repo, "git", "remote", "add", "origin", str(tmp_path / "shared.git"))
    said = tmp_path / "said"
    flow = (
        "(trap 'sleep 1; echo saved >> $SAID; exit' TERM; mkdir -p .dvc/tmp; exec 9>.dvc/tmp/flow.lock; "
        "flock 9; sleep 60 9>&- & wait)"
    )
    python = repo / ".venv" / "bin" / "python"
    toy.write_program(python, f'echo "$PWD" "$@" >> $SAID; {flow} & exec sleep 60')
    toy.write_program(python.with_name("scontrol"), 'echo "$@" >> $SAID')
    (repo / ".prefect").mkdir()
    (repo / ".prefect" / "password").touch()
    for name, value in {"SLURM_SUBMIT_DIR": repo, "SLURM_ARRAY_TASK_ID": 3, "SAID": said}.items():
        monkeypatch.setenv(name, str(value))
    monkeypatch.setenv("PATH", f"{python.parent}:{os.environ['PATH']}")
    return said


@pytest.mark.parametrize(
    ("number", "after"),
    [(signal.SIGUSR1, ["requeue", "7"]), pytest.param(signal.SIGTERM, [], marks=pytest.mark.slow)],
)
def test_slurm_ends_a_worker_in_its_own_clone(
    number: signal.Signals, after: list[str], slurm: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So that no worker checks out commits where somebody works; it ends once its training is saved."""
    monkeypatch.setenv("SLURM_JOB_ID", "7")
    script = subprocess.Popen(["bash", str(DEPLOY / "worker.slurm")], cwd=tmp_path)
    clone = tmp_path / "toy-worker-3"
    assert soon(slurm.exists, 20)
    time.sleep(0.2)
    script.send_signal(number)
    script.wait(20)
    started = [str(clone), "-m", "pipelines.flows.machine", "worker", "remote"]
    assert slurm.read_text().split() == [*started, "saved", *after]
    assert (clone / "dvc.yaml").exists()
    assert (clone / ".prefect" / "password").stat().st_mode & 0o777 == 0o600


def test_a_container_that_stops_waits_for_its_training(slurm: Path, tmp_path: Path) -> None:
    """It must have saved when the container ends, which takes all its processes with it."""
    env = {"GIT_URL": str(tmp_path / "shared.git"), "CLONE": str(tmp_path / "clone")}
    script = subprocess.Popen(["sh", str(DEPLOY / "start-worker.sh")], env={**os.environ, **env})
    assert soon((tmp_path / "clone/.dvc/tmp/flow.lock").exists, 20)
    time.sleep(0.2)
    script.terminate()
    assert script.wait(20) == 143
    assert slurm.read_text().split()[-2:] == ["remote", "saved"]


def test_all_wait_long_enough_for_a_training_to_save() -> None:
    """The process guard gives it this time. Killed earlier, it loses what it has done since a checkpoint."""
    saved = process_guard.GRACE + 10  # the flow, too, must end
    (workers,) = [manifest for manifest in MANIFESTS if manifest["kind"] == "StatefulSet"]
    pod = workers["spec"]["template"]["spec"]
    assert pod["terminationGracePeriodSeconds"] >= saved
    times = [
        ("deploy/convs2s-worker@.service", r"TimeoutStopSec=(\d+)"),
        ("deploy/start-worker.sh", r"flock --timeout (\d+)"),
        ("deploy/worker.slurm", r"flock --timeout (\d+)"),
        ("deploy/worker.slurm", r"--signal=B:USR1@(\d+)"),
        ("deploy/Dockerfile", r"--stop-timeout (\d+)"),
        ("docs/machines.md", r"--stop-timeout (\d+)"),
    ]
    for name, pattern in times:
        (seconds,) = re.findall(pattern, (toy.ROOT / name).read_text(encoding="utf-8"))
        assert int(seconds) >= saved, name


def test_slurm_clones_a_larger_repository(
    repo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The worker then starts in the subfolder that the job was submitted from."""
    project = tmp_path / "larger" / "project"
    project.parent.mkdir()
    shutil.rmtree(repo / ".git")
    repo.rename(project)
    toy.run(project.parent, "git", "init", "--quiet")
    toy.commit(project.parent)
    toy.run(project.parent, "git", "remote", "add", "origin", str(project.parent))
    toy.write_program(project / ".venv" / "bin" / "python", 'echo "$PWD" "$PYTHONPATH"')
    (project / ".prefect").mkdir()
    (project / ".prefect" / "password").touch()
    for name, value in {"SLURM_SUBMIT_DIR": project, "SLURM_JOB_ID": 7}.items():
        monkeypatch.setenv(name, str(value))
    printed = subprocess.check_output(["bash", str(DEPLOY / "worker.slurm")], text=True)
    place = project.with_name("project-worker-1") / "project"
    assert printed.split() == [str(place)] * 2
    assert (place / ".prefect" / "password").exists()


def test_kubernetes_would_accept_the_manifests() -> None:
    """Its schemas know every field. They take 100 MB, so their package is an extra of its own."""
    validator = pytest.importorskip("kubernetes_validate", reason="pip install -e '.[kubernetes]'")
    for manifest in MANIFESTS:
        validator.validate(manifest, "1.37", strict=True)


def test_a_container_works_in_a_clone(repo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A pod that replaces another finds its clone again; all use the cache of the manifest's settings."""
    manifests = {manifest["kind"]: manifest for manifest in MANIFESTS}
    (container,) = manifests["StatefulSet"]["spec"]["template"]["spec"]["containers"]
    mounts = {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]}
    assert mounts["dvc"] == system_config_dir()
    toy.run(tmp_path, "git", "clone", "--quiet", "--bare", str(repo), "shared.git")
    toy.write_program(tmp_path / "bin" / "python", 'echo "$PWD" "$PYTHONPATH" "$@"')
    clone = str(tmp_path / "clones" / "worker-1")
    (tmp_path / "config").write_text(manifests["ConfigMap"]["data"]["config"])
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}")
    paths = {"GIT_URL": "shared.git", "CLONE": "clones/worker-1", "DVC_SYSTEM_CONFIG_DIR": ""}
    for name, path in paths.items():
        monkeypatch.setenv(name, str(tmp_path / path))
    for _ in range(2):
        printed = subprocess.check_output(["sh", str(DEPLOY / "start-worker.sh"), "remote"], text=True)
        assert printed.split() == [clone, clone, "-m", "pipelines.flows.machine", "worker", "remote"]
    assert Config(f"{clone}/.dvc")["cache"]["dir"] == f"{mounts['shared']}/cache"
    monkeypatch.setenv("PROJECT", "deploy")
    printed = subprocess.check_output(["sh", str(DEPLOY / "start-worker.sh")], text=True)
    assert printed.split()[:2] == [f"{clone}/deploy"] * 2
