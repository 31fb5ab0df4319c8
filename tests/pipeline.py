"""The whole pipeline in a folder: the commands of dvc.yaml, resolved and ordered by DVC."""

import contextlib
import os
import runpy
import shlex
import subprocess
import sys
import warnings
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest import mock

import networkx as nx  # type: ignore[import-untyped]
from dvc.repo import Repo
from ruamel.yaml import YAML

from convs2s.config.params import Params

ROOT = Path(__file__).parent.parent
# Python imports this at its start, if it is on its path.
NOTE_MODULES = """
import atexit, os, sys
def note():
    ours = sorted(name for name in sys.modules if name.split(".")[0] in {"convs2s", "pipelines"})
    with open(os.environ["NOTED_MODULES"], "a") as out:
        out.write("\\n".join(ours) + "\\n")
atexit.register(note)
"""


def run_all(params: Params, data: Path, *, processes: bool = False) -> dict[str, set[str]]:
    """Run every stage with these parameters; outputs go to `data`.

    Returns:
        The modules of the project that each stage's process had imported at its end, by stage.

    Args:
        params: of all stages.
        data: what stages take to be data/ of the repository.
        processes: run each stage in a process of its own, as DVC does; a stage's further commands, which
            differ in arguments only, run in this process, since a start costs more than the work.
    """
    with TemporaryDirectory() as temporary:
        folder = Path(temporary)
        data.mkdir(exist_ok=True)
        (folder / "data").symlink_to(data)
        (folder / "sitecustomize.py").write_text(NOTE_MODULES)
        imported: dict[str, set[str]] = {}
        for name, command in stage_commands(params, folder).items():
            stage, _, _ = name.partition("@")
            if processes and stage not in imported:
                imported[stage] = run_process(command, folder)
            else:
                run_here(command, folder)
        return imported


def stage_commands(params: Params, folder: Path) -> dict[str, str]:
    """Make the folder this repository, its code linked; return the command of each stage, in order."""
    for name in ("convs2s", "pipelines", "experiments"):
        (folder / name).symlink_to(ROOT / name)
    (folder / "dvc.yaml").write_bytes((ROOT / "dvc.yaml").read_bytes())
    with (folder / "params.yaml").open("w", encoding="utf-8") as stream:
        YAML(typ="safe").dump(params.model_dump(mode="json"), stream)
    Repo.init(str(folder), no_scm=True).close()
    with Repo(str(folder)) as repo:
        return {stage.name: stage.cmd for stage in nx.dfs_postorder_nodes(repo.index.graph)}


def run_process(command: str, folder: Path) -> set[str]:
    """Run a command by the shell, with this Python; return the modules of the project that it imported."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        command,
        shell=True,
        cwd=folder,
        env={**os.environ, "PATH": path, "PYTHONPATH": str(folder), "NOTED_MODULES": str(folder / "noted")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    noted = (folder / "noted").read_text().split()
    (folder / "noted").unlink()
    return set(noted)


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
