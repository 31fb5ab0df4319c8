"""The whole pipeline in a folder: the commands of dvc.yaml, resolved and ordered by DVC."""

import functools
import shutil
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest import mock

import networkx as nx  # type: ignore[import-untyped]
from dvc.repo import Repo
from ruamel.yaml import YAML

from convs2s.config.params import Params
from pipelines.preset import NO_OVERRIDES, Overrides, render
from pipelines.stages import _code as code
from tests.fresh import run_fresh, run_here

ROOT = Path(__file__).parent.parent
WITH_ENSEMBLE = {"train.seeds": [1, 2], "evaluate.ensembles": ["all"]}


def run_all(params: Params, data: Path, *, processes: bool = False) -> dict[str, set[str]]:
    """Run every stage with these parameters; outputs go to `data`.

    Args:
        params: the parameters of all stages.
        data: the folder that stages see as the repository's data/.
        processes: run the first command of each stage in its own process, as DVC does. The stage's other
            commands differ only in their arguments; they run in this process, which saves the imports.

    Returns:
        The project's modules that each stage's own process had imported by its end, by stage.
    """
    with TemporaryDirectory() as temporary:
        folder = Path(temporary)
        data.mkdir(exist_ok=True)
        (folder / "data").symlink_to(data)
        imported: dict[str, set[str]] = {}
        for name, command in stage_commands(params, folder).items():
            stage, _, _ = name.partition("@")
            if processes and stage not in imported:
                imported[stage] = run_fresh(command, folder)
            else:
                with mock.patch.object(code, "Module", module_of):
                    run_here(command, folder)
        return imported


def module_of(path: Path) -> code.Module:
    """Return a module as stage `snapshot` reads it; all tests share the analysis of the same text."""
    return module_with(path, path.read_bytes())


@functools.cache
def module_with(path: Path, content: bytes, read: Callable[[Path], code.Module] = code.Module) -> code.Module:
    """Read a module, which must have this content."""
    found = read(path)
    assert found.content == content
    return found


def stage_commands(params: Params, folder: Path) -> dict[str, str]:
    """Set up the folder as this repository, with links to its code; return each stage's command, in order."""
    for name in ("convs2s", "pipelines", "experiments"):
        (folder / name).symlink_to(ROOT / name)
    (folder / "dvc.yaml").write_bytes((ROOT / "dvc.yaml").read_bytes())
    with (folder / "params.yaml").open("w", encoding="utf-8") as stream:
        YAML(typ="safe").dump(params.model_dump(mode="json"), stream)
    Repo.init(str(folder), no_scm=True).close()
    with Repo(str(folder)) as repo:
        return {stage.name: stage.cmd for stage in nx.dfs_postorder_nodes(repo.index.graph)}


def bare_repository(folder: Path, overrides: Overrides = NO_OVERRIDES) -> Path:
    """Set up a folder where DVC can read this pipeline, with the default preset and some overrides."""
    shutil.copy(ROOT / "dvc.yaml", folder)
    (folder / "params.yaml").write_text(render("tatoeba-en-de", overrides=overrides), encoding="utf-8")
    Repo.init(str(folder), no_scm=True).close()
    return folder
