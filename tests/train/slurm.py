"""A Slurm cluster on this machine: its daemons, with two nodes, in a folder."""

import contextlib
import getpass
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

PATH = f"{os.environ['PATH']}:/usr/sbin"
PROGRAMS = "munged", "slurmctld", "slurmd", "srun"
CONFIG = """
ClusterName=test
SlurmctldHost={host}
SlurmctldPort={ports[0]}
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
AuthInfo=socket={folder}/munge
StateSaveLocation={folder}
SlurmdSpoolDir={folder}/%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/%n.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
KillWait=30
NodeName=a NodeHostname={host} Port={ports[1]} CPUs=1
NodeName=b NodeHostname={host} Port={ports[2]} CPUs=1
PartitionName=all Nodes=ALL Default=YES State=UP
"""


@contextlib.contextmanager
def slurm(folder: Path) -> Iterator[None]:
    """Run a cluster of the nodes a and b, which SLURM_CONF names; skip the test if a program is missing."""
    if missing := [name for name in PROGRAMS if not shutil.which(name, path=PATH)]:
        pytest.skip(f"no {', '.join(missing)}: install slurm-wlm and munge")
    host, config, ports = socket.gethostname(), folder / "slurm.conf", []
    for _ in range(3):
        with socket.socket() as one:
            one.bind(("", 0))
            ports.append(one.getsockname()[1])
    for name in "ab":
        (folder / name).mkdir(parents=True)
    config.write_text(CONFIG.format(host=host, user=getpass.getuser(), folder=folder, ports=ports))
    (folder / "key").touch(0o600)
    (folder / "key").write_bytes(os.urandom(64))
    files = {"socket": "munge", "key-file": "key", "pid-file": "pid", "log-file": "log", "seed-file": "seed"}
    # By default, munged refuses a folder that not all users can read.
    munged = [
        "munged",
        "--foreground",
        "--force",
        *(f"--{one}={folder}/{name}" for one, name in files.items()),
    ]
    daemons = []
    with pytest.MonkeyPatch.context() as patch, (folder / "daemons.log").open("a") as log:
        patch.setenv("SLURM_CONF", str(config))
        patch.setenv("PATH", PATH)
        for command in (
            munged,
            ["slurmctld", "-D"],
            ["slurmd", "-D", "-N", "a"],
            ["slurmd", "-D", "-N", "b"],
        ):
            daemons.append(subprocess.Popen(command, stdout=log, stderr=log))
            time.sleep(1)
        try:
            yield
        finally:
            for daemon in reversed(daemons):
                daemon.terminate()
                with contextlib.suppress(subprocess.TimeoutExpired):
                    daemon.wait(5)
                daemon.kill()
