"""The runner of stages: sections of params.yaml are passed by class, everything else by name."""

import re
import shlex
import shutil
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from dvc.repo import Repo
from ruamel.yaml import YAML

from pipelines.stages import __main__ as runner
from pipelines.stages import _params
from pipelines.stages import filter as filter_stage
from tests.pipeline import WITH_ENSEMBLE, bare_repository

ROOT = Path(__file__).parents[2]
STAGES = sorted(runner.stages())


@pytest.fixture(scope="module")
def pipeline(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Any]]:
    """Stage items of dvc.yaml, including those of an ensemble, by the stage module that they run."""
    folder = bare_repository(tmp_path_factory.mktemp("pipeline"), WITH_ENSEMBLE)
    found: dict[str, list[Any]] = {}
    with Repo(str(folder)) as repo:
        for stage in repo.index.stages:
            found.setdefault(words(stage)[3], []).append(stage)
    return found


def words(stage: Any) -> list[str]:
    return shlex.split(stage.cmd)


@pytest.fixture
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> mock.Mock:
    """The function of the stage filter, which does nothing, in a folder with the repository's params.yaml."""
    shutil.copy(ROOT / "params.yaml", tmp_path)
    monkeypatch.chdir(tmp_path)
    run = mock.Mock(__annotations__=filter_stage.run.__annotations__)
    monkeypatch.setattr(filter_stage, "run", run)
    return run


def test_a_stage_gets_its_section_by_class_and_its_paths_by_name(stage: mock.Mock) -> None:
    """So their order does not matter. An argument may contain the seed, also of a stage that takes none."""
    command = "filter --seed 3 --out {other} --valid {seed} --train a/{seed}/b --raw r --augmented g"
    runner.main(command.split())
    given = dict(stage.call_args.kwargs)
    assert (given.pop("params").max_words, given.pop("languages")) == (175, ("en", "de"))
    assert (given.pop("keep"), given.pop("tag")) == (True, None)
    paths = {"raw": "r", "augmented": "g", "train": "a/3/b", "valid": "3", "out": "{other}"}
    assert given == {name: Path(path) for name, path in paths.items()}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("filter --raw r --augmented g --train a --out c", "the following arguments are required: --valid"),
        (
            "filter --raw r --augmented g --train a --val b --out c",
            "the following arguments are required: --valid",
        ),
        ("filtre", "invalid choice: 'filtre' (choose from"),
        ("download --split dev --downloads a --out b", "argument --split: invalid choice: 'dev'"),
        (
            "filter --train {seed} --augmented g --seed ../.. --valid b --out c",
            "--seed: invalid int value: '../..'",
        ),
    ],
)
def test_a_mistake_in_a_command_is_an_error(
    arguments: str, message: str, stage: mock.Mock, capsys: pytest.CaptureFixture[str]
) -> None:
    """The message names the argument; nothing runs."""
    with pytest.raises(SystemExit) as ended:
        runner.main(arguments.split())
    assert ended.value.code == 2
    assert message in capsys.readouterr().err
    assert not stage.called


@pytest.mark.parametrize(
    ("error", "status", "message"),
    [
        (MemoryError(), 2, "filter: error: out of memory. Use a machine with more memory.\n"),
        (KeyboardInterrupt(), 130, "filter: interrupted. Run the same command to continue: finished stages"),
    ],
)
def test_an_error_is_one_message(
    error: BaseException, status: int, message: str, stage: mock.Mock, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its advice is that of the stage."""
    stage.side_effect = error
    with pytest.raises(SystemExit) as ended:
        runner.main(
            ["filter", "--raw", "r", "--augmented", "g", "--train", "a", "--valid", "b", "--out", "c"]
        )
    assert ended.value.code == status
    assert capsys.readouterr().err.startswith(message)


def test_no_text_of_params_yaml_goes_into_a_command() -> None:
    """A shell would execute it. DVC quotes ${item}; splits come from dvc.yaml itself."""
    for stage in YAML(typ="safe").load((ROOT / "dvc.yaml").read_text(encoding="utf-8"))["stages"].values():
        assert set(re.findall(r"\$\{.*?\}", stage["cmd"])) <= {"${item}", "${item.split}"}


def test_dvc_runs_every_stage_by_the_runner_with_all_its_arguments(pipeline: dict[str, list[Any]]) -> None:
    """A path with the wrong name, or a missing one, would be a parse error."""
    assert sorted(pipeline) == STAGES
    for name, items in pipeline.items():
        expected = {a: h for a, h in runner.annotations(runner.load(name)).items() if not runner.keys(h)}
        for item in items:
            command = words(item)
            assert command[:4] == ["python", "-m", "pipelines.stages", name]
            values = runner.parse(name, expected, command[4:])
            assert set(values) == set(expected) | {"seed", "snapshot"}
            assert (command[4] == "--snapshot") == (name != "snapshot")


def test_the_table_of_values_has_every_stage_and_its_module(pipeline: dict[str, list[Any]]) -> None:
    """A stage without a row would have no snapshot; each depends on the file that it reads."""
    items = [(name, item) for name, items in pipeline.items() for item in items if name != "snapshot"]
    snapshots = {words(item)[5]: name for name, item in items}
    assert snapshots == {f"data/snapshot/{name}.txt": _params.module_of(name) for name in _params.PARAMS}
    for _, item in items:
        row = Path(words(item)[5]).stem
        assert item.name == row or item.name.startswith(f"{row}@")
        assert _params.params_of(item.name) == _params.PARAMS[row]
        code = [
            dep.def_path for dep in item.deps if dep.def_path.startswith(("convs2s", "pipelines", "data/s"))
        ]
        assert code == [words(item)[5]]


def test_a_stage_takes_exactly_the_sections_that_dvc_tracks(pipeline: dict[str, list[Any]]) -> None:
    """A section that `run` takes but DVC does not track gives stale results; the reverse, needless reruns."""
    found: dict[str, set[str]] = {}
    for name, items in pipeline.items():
        hints = runner.annotations(runner.load(name)).values()
        taken = {key.split(".")[0] for hint in hints for key in runner.keys(hint)}
        found[name] = {key.split(".")[0] for item in items for key in _params.params_of(item.name)}
        assert found[name] == taken, name
    assert set.union(*found.values()) == set(runner.Params.model_fields)


def test_dvc_tracks_every_key_of_a_section_that_has_an_effect() -> None:
    """Checkpoints, event files and how machines meet change no result; seeds are items."""
    untracked = {
        "train": {
            *("seeds", "checkpoint_updates", "checkpoint_minutes", "checkpoints"),
            *("tensorboard", "launcher", "rendezvous", "restarts"),
        },
        "align": {"candidates"},  # only for stage candidates
    }
    for name, keys in untracked.items():
        fields = set(runner.Params.model_fields[name].annotation.model_fields)  # type: ignore[union-attr]
        tracked = {key.split(".")[1] for key in _params.PARAMS[name] if key.startswith(f"{name}.")}
        assert fields - tracked == keys
    for split in ("train", "valid", "development", "test"):
        keys = {"source_language", "target_language", "folder", "references", split}
        keys |= {"train_pairs"} if split == "train" else set()
        assert set(_params.PARAMS[f"download@{split}"]) == {f"download.{key}" for key in keys}
