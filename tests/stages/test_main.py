"""The runner passes sections of params.yaml by class, all else by name; dvc.yaml fits the stages."""

import functools
import importlib
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any
from unittest import mock

import grimp
import pytest
from dvc.dependency.param import ParamsDependency
from dvc.repo import Repo

from convs2s.config.load import load_params
from convs2s.config.params import Params
from pipelines.stages import __main__ as runner
from pipelines.stages import filter as filter_stage
from tests.pipeline import WITH_ENSEMBLE, bare_repository

ROOT = Path(__file__).parents[2]
STAGES = runner.stages()
FILTER = "filter --out o --valid v --train a/3/b --raw r --augmented g"


@pytest.fixture(scope="module")
def pipeline(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Any]]:
    """Stage items of dvc.yaml, including those of an ensemble, by the stage module that they run."""
    folder = bare_repository(tmp_path_factory.mktemp("pipeline"), WITH_ENSEMBLE)
    found: dict[str, list[Any]] = {}
    with Repo(str(folder)) as repo:
        for stage in repo.index.stages:
            found.setdefault(words(stage)[3], []).append(stage)
    return found


def module_of(name: str) -> Any:
    return importlib.import_module(f"pipelines.stages.{name}")


def words(stage: Any) -> list[str]:
    return shlex.split(stage.cmd.replace("$DVC_STAGE", stage.name))


@pytest.fixture
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> mock.Mock:
    """The function of the stage filter, which does nothing, in a folder with the repository's params.yaml."""
    shutil.copy(ROOT / "params.yaml", tmp_path)
    monkeypatch.chdir(tmp_path)
    run = mock.Mock(__annotations__=filter_stage.run.__annotations__)
    monkeypatch.setattr(filter_stage, "run", run)
    return run


def test_a_stage_gets_its_sections_by_class_and_its_paths_by_name(stage: mock.Mock) -> None:
    """The order of arguments in a stage's `run` or in dvc.yaml does not matter."""
    runner.main(FILTER.split())
    given = dict(stage.call_args.kwargs)
    params = load_params()
    sections = given.pop("params"), given.pop("augment"), given.pop("languages")
    assert sections == (params.filter, params.augment, params.languages)
    paths = {"raw": "r", "augmented": "g", "train": "a/3/b", "valid": "v", "out": "o"}
    assert given == {name: Path(path) for name, path in paths.items()}


def test_dvc_runs_every_stage_by_the_runner_with_all_its_arguments(pipeline: dict[str, list[Any]]) -> None:
    """A path with the wrong name, or a missing one, would be a parse error."""
    assert sorted(pipeline) == STAGES
    for name, items in pipeline.items():
        hints = runner.annotations(module_of(name).run)
        for item in items:
            command = words(item)
            assert command[:4] == ["python", "-m", "pipelines.stages", name]
            paths = {argument for argument, hint in hints.items() if hint not in runner.SECTIONS}
            assert set(runner.parse_arguments(name, hints, command[4:])) == paths


def test_a_stage_learns_its_seed_from_dvc(pipeline: dict[str, list[Any]]) -> None:
    """The command names DVC's variable, as a seed in it would be text of params.yaml."""
    members: dict[str, Any] = {}
    for name, items in pipeline.items():
        hints = runner.annotations(module_of(name).run)
        for item in items:
            values = runner.parse_arguments(name, hints, words(item)[4:])
            if (member := values.get("seed", values.get("member"))) is not None:
                members[item.name] = member
    of_seeds = {f"{name}@{seed}": seed for name in ("train", "package") for seed in (1, 2)}
    of_models = {f"{name}@{seed}": str(seed) for name in ("tune", "translate", "replace") for seed in (1, 2)}
    ensembles = dict.fromkeys(("tune-ensemble@all", "ensemble@all", "replace-ensemble@all"), "ensemble")
    assert members == of_seeds | of_models | ensembles


def test_dvc_tracks_exactly_the_values_that_a_stage_takes(pipeline: dict[str, list[Any]]) -> None:
    """A section that `run` takes but DVC does not track gives stale results; the reverse, needless reruns.

    No result depends on `run`. A seed's search takes the list of seeds, but only the ensemble's uses it.
    """
    tracked = {"run"}
    for name, items in pipeline.items():
        hints = runner.annotations(module_of(name).run).values()
        taken = {runner.SECTIONS[hint] for hint in hints if hint in runner.SECTIONS} - {"run"}
        for item in items:
            params = {key for dep in item.deps if isinstance(dep, ParamsDependency) for key in dep.params}
            split = f"download.{item.name.partition('@')[2]}"
            found = {"download" if key in {split, "download.folder"} else key for key in params}
            assert found == taken - ({"seeds"} if item.name.startswith(("tune@", "translate@")) else set())
            tracked |= {key for key in found if "." not in key}
    assert tracked == set(Params.model_fields)


@pytest.mark.parametrize("name", STAGES)
def test_dvc_tracks_the_code_that_a_stage_can_run(name: str, pipeline: dict[str, list[Any]]) -> None:
    """Every module that its own module imports, at any distance, and no folder without one of them.

    The code that reads params.yaml and the runner of stages are left out.
    """
    reached = {one for one in graph().find_upstream_modules(f"pipelines.stages.{name}") if "." in one}
    files = {Path(*one.split(".")).with_suffix(".py") for one in reached | {f"pipelines.stages.{name}"}}
    files = {path for path in files if (ROOT / path).is_file() and not left_out(path)}
    for item in pipeline[name]:
        code = [Path(dep.def_path) for dep in item.deps if dep.def_path.startswith(("convs2s", "pipelines"))]
        assert {path for path in files if not {path, *path.parents} & {*code}} == set()
        folders = {path.parent for one in code for path in (ROOT / one).rglob("[!_]*.py")}
        folders = {path.relative_to(ROOT) for path in folders} | {one for one in code if one.suffix}
        assert {one for one in folders if not files & {one, *(p for p in files if p.parent == one)}} == set()


def left_out(path: Path) -> bool:
    """Return whether dvc.yaml leaves a module out on purpose."""
    return path.parts[:2] == ("convs2s", "config") or path.name.startswith("_")


@functools.cache
def graph() -> grimp.ImportGraph:
    return grimp.build_graph("convs2s", "pipelines", cache_dir=None)


def test_only_stages_with_a_model_import_pytorch() -> None:
    """It takes over a second, in which a stage that copies or counts would be done."""
    others = [f"pipelines.stages.{name}" for name in STAGES if name not in ("augment", "train", "translate")]
    program = "import importlib, sys; [importlib.import_module(name) for name in sys.argv[1:]]"
    program += "; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program, *others], stdout=subprocess.PIPE, check=True)
    assert done.stdout == b"False\n"
