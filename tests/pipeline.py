"""The whole pipeline in a folder: the commands of dvc.yaml, resolved and ordered by DVC."""

import shutil
from pathlib import Path
from tempfile import TemporaryDirectory

import networkx as nx  # type: ignore[import-untyped]
from dvc.repo import Repo
from ruamel.yaml import YAML

from convs2s.config.params import Params
from pipelines.overrides import NO_OVERRIDES, Overrides
from pipelines.preset import render
from tests.fresh import run_here

ROOT = Path(__file__).parent.parent
WITH_ENSEMBLE = {"seeds": [1, 2], "evaluate.ensembles": ["all"]}


def run_all(params: Params, data: Path) -> None:
    """Run every stage with these parameters in this process; outputs go to `data`, the repository's data/."""
    with TemporaryDirectory() as temporary:
        folder = Path(temporary)
        data.mkdir(exist_ok=True)
        (folder / "data").symlink_to(data)
        for command in stage_commands(params, folder):
            run_here(command, folder)


def stage_commands(params: Params, folder: Path) -> list[str]:
    """Set up the folder as this repository, with links to its code; return each stage's command, in order."""
    for name in ("convs2s", "pipelines", "experiments"):
        (folder / name).symlink_to(ROOT / name)
    (folder / "dvc.yaml").write_bytes((ROOT / "dvc.yaml").read_bytes())
    with (folder / "params.yaml").open("w", encoding="utf-8") as stream:
        YAML(typ="safe").dump(params.model_dump(mode="json"), stream)
    Repo.init(str(folder), no_scm=True).close()
    with Repo(str(folder)) as repo:
        return [stage.cmd for stage in nx.dfs_postorder_nodes(repo.index.graph)]


def bare_repository(folder: Path, overrides: Overrides = NO_OVERRIDES) -> Path:
    """Set up a folder where DVC can read this pipeline, with the default preset and some overrides."""
    shutil.copy(ROOT / "dvc.yaml", folder)
    (folder / "params.yaml").write_text(render("tatoeba-en-de", overrides=overrides), encoding="utf-8")
    Repo.init(str(folder), no_scm=True).close()
    return folder
