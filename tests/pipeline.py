"""The whole pipeline in a folder: the commands of dvc.yaml, resolved and ordered by DVC."""

import contextlib
import os
import runpy
import shlex
import subprocess
import sys
import warnings
from pathlib import Path
from unittest import mock

import networkx as nx  # type: ignore[import-untyped]
from dvc.repo import Repo

ROOT = Path(__file__).parent.parent


def stage_commands(folder: Path) -> dict[str, str]:
    """Return the command of each stage, in order, with the values of the folder's params.yaml.

    Makes the folder a copy of this repository, its code linked rather than copied.
    """
    for name in ("convs2s", "pipelines", "experiments"):
        (folder / name).symlink_to(ROOT / name)
    (folder / "dvc.yaml").write_bytes((ROOT / "dvc.yaml").read_bytes())
    Repo.init(str(folder), no_scm=True).close()
    with Repo(str(folder)) as repo:
        return {stage.name: stage.cmd for stage in nx.dfs_postorder_nodes(repo.index.graph)}


def run_pipeline(folder: Path, *, processes: bool = False) -> None:
    """Run every stage with the folder's params.yaml; outputs go to the folder's data/.

    Args:
        folder: where params.yaml is.
        processes: run each stage in a process of its own, as DVC does; a stage's further commands, which
            differ in arguments only, run in this process, since a start costs more than the work.
    """
    started: set[str] = set()
    for name, command in stage_commands(folder).items():
        stage, _, _ = name.partition("@")
        if processes and stage not in started:
            run_process(command, folder)
        else:
            run_here(command, folder)
        started.add(stage)


def run_process(command: str, folder: Path) -> None:
    """Run a command by the shell, with this Python."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        command,
        shell=True,
        cwd=folder,
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"


def run_here(command: str, folder: Path) -> None:
    """Run `python -m MODULE ARGUMENTS` in this process."""
    python, option, module, *arguments = shlex.split(command)
    assert (python, option) == ("python", "-m"), command
    with (
        contextlib.chdir(folder),
        mock.patch.object(sys, "argv", [module, *arguments]),
        warnings.catch_warnings(),
    ):
        warnings.filterwarnings("ignore", "'.*' found in sys.modules after import")  # by another test
        runpy.run_module(module, run_name="__main__", alter_sys=True)
