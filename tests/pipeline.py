"""The whole pipeline in a folder: the commands of dvc.yaml, resolved and ordered by DVC."""

import contextlib
import runpy
import shlex
import shutil
import sys
import warnings
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest import mock

import networkx as nx  # type: ignore[import-untyped]
from dvc.repo import Repo
from ruamel.yaml import YAML

from convs2s.config.params import Params
from pipelines.preset import apply_overrides, render_preset

ROOT = Path(__file__).parent.parent
WITH_ENSEMBLE = {"seeds": [1, 2], "evaluate.ensembles": ["all"]}


def run_here(command: str, stage: str, folder: Path) -> None:
    """Run a stage's command, `python -m MODULE ARGUMENTS`, in this process, with DVC's name of the stage."""
    python, option, module, *arguments = shlex.split(command.replace("$DVC_STAGE", stage))
    assert (python, option) == ("python", "-m"), command
    with (
        contextlib.chdir(folder),
        mock.patch.object(sys, "argv", [module, *arguments]),
        warnings.catch_warnings(),
    ):
        warnings.filterwarnings("ignore", "'.*' found in sys.modules after import")  # by other tests
        runpy.run_module(module, run_name="__main__", alter_sys=True)


def run_all(params: Params, data: Path) -> None:
    """Run every stage with these parameters in this process; outputs go to `data`, the repository's data/."""
    with TemporaryDirectory() as temporary:
        folder = Path(temporary)
        data.mkdir(exist_ok=True)
        (folder / "data").symlink_to(data)
        for name in ("convs2s", "pipelines", "experiments"):
            (folder / name).symlink_to(ROOT / name)
        shutil.copy(ROOT / "dvc.yaml", folder)
        with (folder / "params.yaml").open("w", encoding="utf-8") as stream:
            YAML(typ="safe").dump(params.model_dump(mode="json"), stream)
        Repo.init(str(folder), no_scm=True).close()
        with Repo(str(folder)) as repo:
            stages = [(stage.cmd, stage.name) for stage in nx.dfs_postorder_nodes(repo.index.graph)]
        for command, name in stages:
            run_here(command, name, folder)


def bare_repository(folder: Path, overrides: Mapping[str, Any]) -> Path:
    """Set up a folder where DVC can read this pipeline, with the default preset and some overrides."""
    shutil.copy(ROOT / "dvc.yaml", folder)
    text, _ = apply_overrides(render_preset("tatoeba-en-de"), overrides)
    (folder / "params.yaml").write_text(text, encoding="utf-8")
    Repo.init(str(folder), no_scm=True).close()
    return folder
