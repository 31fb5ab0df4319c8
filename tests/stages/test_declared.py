"""A stage fails if a value or file that dvc.yaml declares for it changes while it runs, and only then."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from dvc.dependency.param import ParamsDependency
from dvc.repo import Repo
from ruamel.yaml import YAML

from convs2s.config.load import load_params
from pipelines.stages import __main__ as runner
from pipelines.stages import filter as filter_stage
from pipelines.stages._declared import (
    declared,
    fill_templates,
    find_value,
    is_ignored,
    split_item,
    take_state,
    unchanged,
    walk,
)
from pipelines.stages._lifetime import DVC_STAGE
from tests.pipeline import WITH_ENSEMBLE, bare_repository
from tests.presets import rendered

pytestmark = pytest.mark.usefixtures("yaml_once")  # takes two thirds of the time
ROOT = Path(__file__).parents[2]
CODE, TEXT = "convs2s/text/corpus/filter.py", "data/tokenized/train/source.txt"


@pytest.fixture(autouse=True)
def _stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the stage filter reads, beside a file that another stage reads."""
    monkeypatch.chdir(tmp_path)
    for name in ("dvc.yaml", ".dvcignore"):
        shutil.copy(ROOT / name, tmp_path)
    Path("params.yaml").write_text(rendered("tatoeba-en-de"), encoding="utf-8")
    for name in (CODE, TEXT, "convs2s/model/decoder.py", "convs2s/base/__pycache__/files.pyc"):
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_text("a b\n")


def edit(name: str, old: str, new: str) -> Callable[[], object]:
    return lambda: Path(name).write_text(Path(name).read_text().replace(old, new, 1))


CHANGES: dict[str, tuple[Callable[[], object], str]] = {
    "a value": (edit("params.yaml", "max_words: 175", "max_words: 9"), "filter.max_words 175 -> 9"),
    "code": (edit(CODE, "a", "aa"), rf"{CODE} 4 \d+ \d+ -> 5 \d+ \d+"),
    "a text": (edit(TEXT, "a", "aa"), rf"{TEXT} 4 .* -> 5 .*"),
    "a text, touched": (lambda: os.utime(TEXT, (0, 0)), rf"{TEXT} 4 .* -> 4 0 \d+"),
    "a text, gone": (Path(TEXT).unlink, rf"{TEXT} 4 .* -> None"),
    "a new text": (Path("data/raw/test/new.txt").touch, r"data/raw/test/new\.txt None -> 0 .*"),
}


@pytest.mark.parametrize(("act", "message"), CHANGES.values(), ids=CHANGES)
def test_a_change_of_what_is_declared_is_an_error_at_the_end(act: Callable[[], object], message: str) -> None:
    """DVC would record the result with what it finds then. The message says what, from what, to what."""
    Path("data/raw/test").mkdir(parents=True)
    expected = rf"^changed while the stage ran, .*: {message}\. Undo"
    with pytest.raises(ValueError, match=expected), unchanged("filter"):
        act()


@pytest.mark.parametrize(
    "act",
    [
        edit("params.yaml", "beam_size: 5", "beam_size: 9"),
        edit("params.yaml", "# longest side", "# the longest side"),
        edit("convs2s/model/decoder.py", "a", "b"),
        edit("convs2s/base/__pycache__/files.pyc", "a", "b"),
    ],
)
def test_any_other_change_is_for_other_stages(act: Callable[[], object]) -> None:
    """What this stage does not declare may be edited while it runs; it keeps the values of its start."""
    with unchanged("filter") as params:
        act()
    assert params.translate.beam_size == 5


@pytest.mark.parametrize(
    ("item", "name", "value"),
    [
        ("filter", "filter", ""),
        ("train@1", "train", "1"),
        ("tune-ensemble@all", "tune-ensemble", "all"),
        ("dvc.yaml:download@test", "download", "test"),
    ],
)
def test_an_item_is_a_stage_and_a_value(item: str, name: str, value: str) -> None:
    """DVC writes items like this in $DVC_STAGE and in a stage's address."""
    assert split_item(item) == (name, value)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("seeds", [3, 4]),
        ("seeds[0]", 3),
        ("train", {"dropout": 0.1, "start_from": "data/none"}),
        ("train.dropout", 0.1),
    ],
)
def test_a_key_has_a_value(key: str, value: object) -> None:
    """A name without a value, such as a misspelled one, is an error."""
    params = {"seeds": [3, 4], "train": {"dropout": 0.1, "start_from": "data/none"}}
    assert find_value(key, params) == value
    with pytest.raises(KeyError):
        find_value(f"{key.partition('[')[0]}s", params)


@pytest.mark.parametrize(
    ("text", "filled"),
    [
        ("data/raw", "data/raw"),
        ("${train.start_from}", "data/none"),
        ("data/trained/${item.seed}/model", "data/trained/7/model"),
        ("${item.seed}/${seeds[1]}/${item.seed}", "7/4/7"),
    ],
)
def test_templates_become_values(text: str, filled: str) -> None:
    """A template with `item` gets the value of the item, any other one a value of params.yaml."""
    params = {"seeds": [3, 4], "train": {"start_from": "data/none"}}
    assert fill_templates(text, params, "7") == filled


def test_a_dependency_is_a_file_or_all_files_of_a_folder() -> None:
    """A folder that another stage has not written yet has no files."""
    Path("data/tokenized/train/deep").mkdir()
    Path("data/tokenized/train/deep/more.txt").touch()
    assert list(walk(Path(TEXT))) == [Path(TEXT)]
    assert set(walk(Path("data/tokenized"))) == {Path(TEXT), Path("data/tokenized/train/deep/more.txt")}
    assert list(walk(Path("data/encoded"))) == []


@pytest.mark.parametrize(
    ("path", "ignored"),
    [
        ("convs2s/base/files.py", False),
        ("convs2s/base/files.pyc", True),
        ("convs2s/base/__pycache__/files.txt", True),
        ("convs2s/base/pycache.py", False),
    ],
)
def test_what_dvc_ignores_is_no_dependency(path: str, ignored: bool) -> None:
    """A pattern matches a file, or a folder with all that is in it."""
    assert is_ignored(Path(path), ["__pycache__", "*.pyc"]) == ignored


def test_the_state_has_each_value_and_each_file() -> None:
    """A message can then name what has changed. A file is known by its size, time and inode."""
    state = take_state("filter", Path("params.yaml").read_text())
    stat = Path(TEXT).stat()
    assert state["filter.max_words"] == "175"
    assert state["languages"] == '["en", "de"]'
    assert state[TEXT] == f"4 {stat.st_mtime_ns} {stat.st_ino}"
    assert not {"translate.beam_size", "convs2s/model/decoder.py"} & state.keys()


def test_what_is_declared_is_what_dvc_knows(tmp_path: Path) -> None:
    """DVC resolves the templates of dvc.yaml itself, for every item of every stage."""
    folder = bare_repository(tmp_path, WITH_ENSEMBLE | {"download.folder": "texts"})
    params = YAML(typ="safe").load(folder / "params.yaml")
    with Repo(str(folder)) as repo:
        stages = list(repo.index.stages)
        assert len(stages) > 20
        for stage in stages:
            deps = [dep for dep in stage.deps if not isinstance(dep, ParamsDependency)]
            for dep in deps:
                path = Path(dep.def_path)
                path = path if path.suffix else path / "content"
                path.parent.mkdir(parents=True, exist_ok=True)
                path.touch()
            values, files = declared(stage.addressing, params)
            tracked = [dep.read_params() for dep in stage.deps if isinstance(dep, ParamsDependency)]
            assert values == {key: value for section in tracked for key, value in section.items()}
            folders = {dep.def_path for dep in deps}
            assert {
                name for name in folders if not any(Path(name) in {path, *path.parents} for path in files)
            } == set()
            assert all({str(path), *map(str, path.parents)} & folders for path in files)


def test_the_runner_guards_a_stage_that_dvc_has_started(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only DVC records what a stage used; run by hand, a stage may see its inputs change."""
    monkeypatch.setattr(filter_stage, "run", edit(TEXT, "a", "aa"))
    monkeypatch.setattr(runner, "annotations", lambda _: {})
    runner.start("filter", [])
    monkeypatch.setenv(DVC_STAGE, "filter")
    with pytest.raises(ValueError, match="changed while the stage ran"):
        runner.start("filter", [])
    assert load_params().filter.max_words == 175
