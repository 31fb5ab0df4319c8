"""A stage computes with the values and the code of its snapshot, and fails if its inputs change meanwhile."""

import contextlib
import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from dvc.dependency.param import ParamsDependency
from dvc.repo import Repo

from convs2s.config.load import load_params
from pipelines.stages import __main__ as runner
from pipelines.stages import _inputs, snapshot
from pipelines.stages._code import param_lines
from pipelines.stages._inputs import guard
from pipelines.stages._lifetime import MARK
from tests.pipeline import WITH_ENSEMBLE, bare_repository

ROOT = Path(__file__).parents[2]
SNAPSHOT = Path("data/snapshot/filter.txt")
TABLE = {"filter": ("filter.max_words", "tune"), "filter-ensemble": (), "filter@test": ("download.test",)}
STAGE = "import sacremoses\n\nfrom convs2s.words import ONE\n\n\ndef run():\n    return ONE\n"
TEXTS = "data/tokenized/train"


@pytest.fixture(autouse=True)
def _run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run that has begun: a stage `filter` with code, values and input texts."""
    monkeypatch.chdir(tmp_path)
    for name in ("params.yaml", "dvc.yaml"):
        shutil.copy(ROOT / name, tmp_path)
    for name, content in {
        "convs2s/words.py": "ONE = 1\n",
        "convs2s/other.py": "TWO = 2\n",
        "pipelines/stages/__main__.py": "",
        "pipelines/stages/filter.py": STAGE,
        f"{TEXTS}/source.txt": "a b\n",
        f"{TEXTS}/linked.txt": "a b\n",
        "data/tokenized/valid/source.txt": "c\n",
    }.items():
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_text(content)
    Path(TEXTS, "linked.txt").chmod(0o444)  # as DVC links to its cache
    monkeypatch.setattr(snapshot, "PARAMS", TABLE)
    snapshot.run(Path("params.yaml"), Path("convs2s"), Path("pipelines/stages"), SNAPSHOT.parent)


def edit(name: str, old: str, new: str) -> Callable[[], object]:
    return lambda: Path(name).write_text(Path(name).read_text().replace(old, new, 1))


def test_a_model_to_start_from_counts_by_its_content_not_its_path(tmp_path: Path) -> None:
    """Another model in the folder reruns the training. Only a stage that uses the model needs the folder."""
    params, lines = load_params(), list[str]()
    for folder, content in (("one", "a"), ("two", "a"), ("two", "b")):
        (tmp_path / "models" / folder).mkdir(parents=True, exist_ok=True)
        (tmp_path / "models" / folder / "model.json").write_text(content)
        train = params.train.model_copy(update={"start_from": folder})
        starting = params.model_copy(update={"train": train})
        [line] = param_lines(starting, ["train.start_from"], tmp_path / "models")
        lines.append(line)
        assert param_lines(starting, ["model"], tmp_path) == param_lines(params, ["model"])
    assert lines[0] == lines[1] != lines[2]
    shutil.rmtree(tmp_path / "models")  # the report says then that the results are not up to date
    assert param_lines(starting, ["train.start_from"], tmp_path) == ["param train.start_from [null]"]
    assert param_lines(params, ["train.start_from"]) == ["param train.start_from null"]


def test_models_and_texts_that_params_yaml_names_are_inputs(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are not in dvc.yaml, but like other inputs they must stay as they are until the stage ends."""
    monkeypatch.setattr(snapshot, "PARAMS", {"filter": ("augment.models", "augment.text")})
    monkeypatch.setattr(snapshot, "check_models", lambda _: None)
    Path("model").mkdir()
    Path("model/model.json").write_text("{}")
    Path("more.txt").write_text("ein Haus\n")
    edit("params.yaml", "models: []", "models: [model]")()
    edit("params.yaml", "text: []", "text: [more.txt]")()
    snapshot.run(Path("params.yaml"), Path("convs2s"), Path("pipelines/stages"), SNAPSHOT.parent)
    for name in ("more.txt", "model/model.json"):
        fails = pytest.raises(ValueError, match=f"^{name} changed while the stage ran")
        with fails, guard("filter", "filter", SNAPSHOT):
            Path(name).touch()
    Path("more.txt").write_text("noch eins\n")
    fails = pytest.raises(ValueError, match=r"^augment\.text changed after this run had begun")
    with fails, guard("filter", "filter", SNAPSHOT):
        pass


def test_the_snapshot_has_values_code_and_libraries_of_each_stage() -> None:
    """Each stage depends on the file of its name."""
    found = {path.stem: path.read_text().splitlines() for path in SNAPSHOT.parent.glob("*.txt")}
    assert found.keys() == {"digests", *TABLE}
    assert found["filter"][0] == "param filter.max_words 175"
    assert found["filter"][1].startswith('param tune {"alphas": [')
    assert found["filter"][2:] == found["filter-ensemble"] == found["filter@test"][1:]
    names = [line.split(" ")[2] for line in found["filter"][2:]]
    assert names == ["convs2s.words", "pipelines.stages.__main__", "pipelines.stages.filter", "sacremoses"]


def test_values_are_those_of_the_snapshot() -> None:
    """An edit of params.yaml is for the next run, and does no harm to this one, even if it is not valid.

    Nor does an edit of code that the stage cannot execute, or of a comment.
    """
    before = load_params()
    edit("convs2s/other.py", "2", "3")()
    edit("convs2s/words.py", "\n", "  # a comment\n")()
    Path("params.yaml").write_text("filter: [")
    with guard("filter", "filter", SNAPSHOT) as params:
        assert params == before


@pytest.mark.parametrize(
    ("name", "old", "new", "changed"),
    [
        ("convs2s/words.py", "1", "2", "convs2s/words.py"),
        ("convs2s/words.py", "=", "(=", "convs2s/words.py"),
        ("data/snapshot/filter.txt", "175", "100", "filter.max_words"),
        ("data/snapshot/params.yaml", "175", "100", "filter.max_words"),
        ("data/snapshot/filter.txt", "library ", "library 0.", "sacremoses"),
    ],
)
def test_a_stage_starts_only_if_all_that_counts_is_as_in_the_snapshot(
    name: str, old: str, new: str, changed: str
) -> None:
    """It would be recorded with what the snapshot says; another machine may have another library."""
    edit(name, old, new)()
    fails = pytest.raises(ValueError, match=f"^{changed} changed after this run had begun")
    with fails, guard("filter", "filter", SNAPSHOT):
        pytest.fail("the stage has started")


def move_back(name: str) -> None:
    """Put another file in the place of one for a moment; content, time and inode are the old ones then."""
    path, kept = Path(name), Path("kept")
    path.rename(kept)
    path.write_text("b\n")
    kept.rename(path)


def replace(name: str) -> None:
    """Put another file of the same size, times and mode in the place of one."""
    path, other = Path(name), Path("other")
    shutil.copy(path, other)
    shutil.copystat(path, other)
    other.replace(path)


CHANGES: dict[str, tuple[str, Callable[[], object]]] = {
    "code": ("convs2s/words.py", edit("convs2s/words.py", "1", "2")),
    "code, moved back": ("convs2s/words.py", lambda: move_back("convs2s/words.py")),
    "an input": (f"{TEXTS}/source.txt", edit(f"{TEXTS}/source.txt", "a", "b")),
    "an input, touched": (f"{TEXTS}/source.txt", lambda: os.utime(f"{TEXTS}/source.txt", (0, 0))),
    "a linked input, replaced": (f"{TEXTS}, {TEXTS}/linked.txt", lambda: replace(f"{TEXTS}/linked.txt")),
    "an input, gone": (f"{TEXTS}, {TEXTS}/source.txt", Path(f"{TEXTS}/source.txt").unlink),
    "a new input": (TEXTS, lambda: Path(f"{TEXTS}/target.txt").touch()),
    "the digests": ("data/snapshot/filter.txt", lambda: move_back("data/snapshot/filter.txt")),
    "the values": ("data/snapshot/params.yaml", lambda: move_back("data/snapshot/params.yaml")),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_while_a_stage_runs_is_an_error_at_its_end(change: str) -> None:
    """The stage may have read either version, so DVC must not record its result."""
    name, act = CHANGES[change]
    with (
        pytest.raises(ValueError, match=f"^{name} changed while the stage ran"),
        guard("filter", "filter", SNAPSHOT),
    ):
        act()


def test_another_clone_may_link_the_same_file_of_the_cache() -> None:
    """A row of a sweep would otherwise end the stages of the others; DVC also sets the mode again."""
    with guard("filter", "filter", SNAPSHOT):
        Path("another-clone").hardlink_to(f"{TEXTS}/linked.txt")
        Path("another-clone").chmod(0o444)


def test_a_change_may_be_the_reason_for_an_error_of_the_stage() -> None:
    """The error gets a note that names the file."""
    with pytest.raises(ValueError, match="unequal lines") as raised, guard("filter", "filter", SNAPSHOT):
        edit("convs2s/words.py", "1", "2")()
        raise ValueError("unequal lines")
    [note] = raised.value.__notes__
    assert note.startswith("convs2s/words.py changed while the stage ran")


@pytest.mark.parametrize(
    ("name", "old", "warning"),
    [
        ("params.yaml", "175", "params.yaml has changed. This run goes on with the values"),
        ("convs2s/words.py", "1", "convs2s/words.py has changed. This stage will end without a result"),
    ],
)
def test_a_change_is_reported_at_once_and_only_once(
    name: str, old: str, warning: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A training may go on for a week."""
    monkeypatch.setattr(_inputs, "SECONDS", 0.01)
    printed = ""
    with contextlib.suppress(ValueError), guard("filter", "filter", SNAPSHOT):
        edit(name, old, "99")()
        deadline = time.monotonic() + 10
        while not printed and time.monotonic() < deadline:
            time.sleep(0.05)
            printed += capsys.readouterr().err
        time.sleep(0.1)
    printed += capsys.readouterr().err
    assert printed.strip().startswith(f"filter: warning: {warning}")
    assert printed.count("warning") == 1


def test_the_inputs_of_a_stage_are_those_that_dvc_knows(tmp_path: Path) -> None:
    """DVC resolves the templates of dvc.yaml itself; parameters are compared one by one."""
    folder = bare_repository(tmp_path, WITH_ENSEMBLE | {"download.folder": "texts"})
    params = load_params(folder / "params.yaml")
    with Repo(str(folder)) as repo:
        stages = list(repo.index.stages)
    assert len(stages) > 20
    for stage in stages:
        deps = [dep.def_path for dep in stage.deps if not isinstance(dep, ParamsDependency)]
        if stage.name != "snapshot":
            assert [str(path) for path in _inputs.dependencies(stage.addressing, params)] == deps


def test_the_runner_checks_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """A stage whose input changes under it fails."""
    monkeypatch.setenv(MARK, "filter")
    monkeypatch.setattr(runner, "load", lambda _: edit(f"{TEXTS}/source.txt", "a", "b"))
    monkeypatch.setattr(runner, "annotations", lambda _: {})
    with pytest.raises(ValueError, match="changed while the stage ran"):
        runner.start("filter", ["--snapshot", str(SNAPSHOT)])
