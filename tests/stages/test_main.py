"""The runner of stages: sections of params.yaml are passed by class, everything else by name."""

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
from dvc.repo import Repo
from ruamel.yaml import YAML

from convs2s.config.train import TrainParams
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
def filtering(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, ...]]:
    """The calls of a stage that only records them, in a folder with the repository's params.yaml."""
    (tmp_path / "params.yaml").write_bytes((ROOT / "params.yaml").read_bytes())
    monkeypatch.chdir(tmp_path)
    calls: list[tuple[Any, ...]] = []

    def run(params: Any, train: Path, valid: Path, out: Path) -> None:
        calls.append((params, train, valid, out))

    run.__annotations__ = filter_stage.run.__annotations__
    monkeypatch.setattr(filter_stage, "run", run)
    return calls


def test_a_stage_gets_its_section_by_class_and_its_paths_by_name(filtering: list[tuple[Any, ...]]) -> None:
    """The order on the command line therefore does not matter."""
    runner.main(["filter", "--out", "c", "--valid", "b", "--train", "a"])
    ((params, *paths),) = filtering
    assert params.max_words == 175
    assert paths == [Path("a"), Path("b"), Path("c")]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("filter --train a --out c", "the following arguments are required: --valid"),
        ("filter --train a --valid b --out c --raw d", "unrecognized arguments: --raw d"),
        ("filter --train a --val b --out c", "the following arguments are required: --valid"),
        ("filtre", "invalid choice: 'filtre' (choose from"),
        ("download --split dev --downloads a --out b", "argument --split: invalid choice: 'dev'"),
        ("train --seed one", "argument --seed: invalid int value: 'one'"),
        (
            "filter --train {seed} --seed ../.. --valid b --out c",
            "argument --seed: invalid int value: '../..'",
        ),
    ],
)
def test_a_mistake_in_a_command_is_an_error(
    arguments: str, message: str, filtering: list[tuple[Any, ...]], capsys: pytest.CaptureFixture[str]
) -> None:
    """The message names the argument; nothing runs."""
    with pytest.raises(SystemExit) as ended:
        runner.main(arguments.split())
    assert ended.value.code == 2
    assert message in capsys.readouterr().err
    assert not filtering


def test_an_argument_may_contain_the_seed(filtering: list[tuple[Any, ...]]) -> None:
    """A stage that takes no seed accepts one for this; braces around other words are kept."""
    runner.main(["filter", "--seed", "3", "--train", "a/{seed}/b", "--valid", "{seed}", "--out", "{other}"])
    ((_, *paths),) = filtering
    assert paths == [Path("a/3/b"), Path("3"), Path("{other}")]


def test_no_text_of_params_yaml_goes_into_a_command() -> None:
    """A shell would execute it. DVC quotes ${item}; splits come from dvc.yaml itself."""
    for stage in YAML(typ="safe").load((ROOT / "dvc.yaml").read_text(encoding="utf-8"))["stages"].values():
        assert set(re.findall(r"\$\{.*?\}", stage["cmd"])) <= {"${item}", "${item.split}"}


def test_an_error_is_one_message(
    filtering: list[tuple[Any, ...]], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A variable enables the traceback; the advice for running out of memory depends on the stage."""
    command = ["filter", "--train", "a", "--valid", "b", "--out", "c"]

    def fails(error: BaseException) -> None:
        def run(params: Any, train: Path, valid: Path, out: Path) -> None:
            raise error

        run.__annotations__ = filter_stage.run.__annotations__
        monkeypatch.setattr(filter_stage, "run", run)

    for error, status, message in (
        (ValueError("a is bad"), 2, "filter: error: a is bad\n"),
        (MemoryError(), 2, "filter: error: out of memory. Use a machine with more memory.\n"),
        (KeyboardInterrupt(), 130, "filter: interrupted. Run the same command to continue: finished stages"),
    ):
        fails(error)
        with pytest.raises(SystemExit) as ended:
            runner.main(command)
        assert ended.value.code == status
        assert capsys.readouterr().err.startswith(message)
    monkeypatch.setenv("CONVS2S_DEBUG", "1")
    with pytest.raises(KeyboardInterrupt):
        runner.main(command)
    monkeypatch.delenv("CONVS2S_DEBUG")
    fails(KeyError("a bug"))
    with pytest.raises(KeyError):
        runner.main(command)


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
    for name, items in pipeline.items():
        if name == "snapshot":  # which takes all of params.yaml
            continue
        hints = runner.annotations(runner.load(name)).values()
        taken = {key.split(".")[0] for hint in hints for key in runner.keys(hint)}
        tracked = {key.split(".")[0] for item in items for key in params_of(item)}
        assert tracked == taken, name


def params_of(item: Any) -> list[str]:
    return list(_params.params_of(item.name))


def test_dvc_tracks_every_key_of_a_section_that_has_an_effect(pipeline: dict[str, list[Any]]) -> None:
    """Checkpoint intervals and the rendezvous address change no result; seeds are items."""
    untracked = {
        "train": {"train.seeds", "train.checkpoint_updates", "train.rendezvous"},
        "align": {"align.candidates"},  # only for stage candidates
    }
    sections = runner.Params.model_fields
    for name in ("train", "align"):
        fields = {f"{name}.{key}" for key in sections[name].annotation.model_fields}  # type: ignore[union-attr]
        tracked = {key for key in params_of(pipeline[name][0]) if key.startswith(f"{name}.")}
        assert fields - tracked == untracked[name]
    for split in ("train", "valid", "development", "test"):
        (item,) = [one for one in pipeline["download"] if one.name == f"download@{split}"]
        keys = {"source_language", "target_language", "folder", "references", split}
        keys |= {"train_pairs"} if split == "train" else set()
        assert set(params_of(item)) == {f"download.{key}" for key in keys}


def test_every_section_of_params_yaml_belongs_to_a_stage(pipeline: dict[str, list[Any]]) -> None:
    """There are no unused values."""
    tracked = {key.split(".")[0] for items in pipeline.values() for one in items for key in params_of(one)}
    assert tracked == set(runner.Params.model_fields)


def test_values_are_looked_up_by_dotted_keys() -> None:
    """One key gives its value, several give a tuple."""
    params = runner.load_params(ROOT / "params.yaml")
    assert runner.look_up(params, ("train",)) is params.train
    assert isinstance(runner.look_up(params, ("train",)), TrainParams)
    assert runner.look_up(params, ("download.source_language", "train.seeds")) == ("en", [1])
