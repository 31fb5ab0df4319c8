"""A stage computes with the values and the code of its snapshot, and fails if its inputs change meanwhile."""

import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from dvc.dependency.param import ParamsDependency
from dvc.repo import Repo

from convs2s.config.load import load_params
from pipelines.stages import _inputs, checksums, snapshot
from pipelines.stages._inputs import unchanged
from tests.pipeline import WITH_ENSEMBLE, bare_repository

ROOT = Path(__file__).parents[2]
INPUTS = Path("params.yaml"), Path("convs2s"), Path("pipelines/stages")
SNAPSHOT = Path("data/snapshot/filter.txt")
STAGE = "from convs2s.words import ONE\n\n\ndef run():\n    return ONE\n"


@pytest.fixture(autouse=True)
def _run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run that has begun: a stage `filter` with code, values and input texts."""
    monkeypatch.chdir(tmp_path)
    shutil.copy(ROOT / "params.yaml", tmp_path)
    shutil.copy(ROOT / "dvc.yaml", tmp_path)
    for name, content in {
        "convs2s/words.py": "ONE = 1\n",
        "convs2s/other.py": "TWO = 2\n",
        "pipelines/stages/__main__.py": "",
        "pipelines/stages/filter.py": STAGE,
        "data/tokenized/train/source.txt": "a b\n",
        "data/tokenized/valid/source.txt": "c\n",
    }.items():
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_text(content)
    monkeypatch.setattr(snapshot, "PARAMS", {"filter": ("filter",)})
    checksums.run(*INPUTS, Path("data/checksums.txt"))
    snapshot.run(*INPUTS, Path("data/checksums.txt"), SNAPSHOT.parent)


def edit(name: str, old: str, new: str) -> Callable[[], object]:
    return lambda: Path(name).write_text(Path(name).read_text().replace(old, new, 1))


def test_values_are_those_of_the_snapshot() -> None:
    """An edit of params.yaml is for the next run, and does no harm to this one, even if it is not valid."""
    before = load_params()
    Path("params.yaml").write_text("filter: [")
    with unchanged("filter", "filter", SNAPSHOT) as params:
        assert params == before


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (edit("convs2s/words.py", "1", "2"), "^convs2s/words.py changed after this run had begun"),
        (lambda: Path("convs2s/words.py").unlink(), "^convs2s/words.py changed after this run had begun"),
        (edit("convs2s/words.py", "=", "(="), "^convs2s/words.py changed after this run had begun"),
        (edit("dvc.yaml", "  filter:", "  filters:"), "^dvc.yaml changed after this run had begun"),
        (edit("dvc.yaml", "stages:", "stages: ["), "^dvc.yaml changed after this run had begun"),
    ],
)
def test_a_stage_does_not_start_with_other_code(change: Callable[[], object], message: str) -> None:
    """It would be recorded with the digest of the code of the snapshot."""
    change()
    with pytest.raises(ValueError, match=message), unchanged("filter", "filter", SNAPSHOT):
        pytest.fail("the stage has started")


@pytest.mark.parametrize(
    "change",
    [edit("convs2s/words.py", "\n", "  # a comment\n"), edit("convs2s/other.py", "2", "3")],
    ids=["a comment", "code of another stage"],
)
def test_a_stage_starts_with_the_same_code(change: Callable[[], object]) -> None:
    """Neither changes what the stage computes."""
    change()
    with unchanged("filter", "filter", SNAPSHOT) as params:
        assert params.filter.max_words == 175


def put_back(name: str) -> None:
    """Write another content and then the old one, as a branch that is checked out for a moment does."""
    before = Path(name).read_bytes()
    Path(name).write_bytes(b"x" * len(before))
    Path(name).write_bytes(before)


def move_back(name: str) -> None:
    """Put another file in the place of one for a moment; content, time and inode are the old ones then."""
    path, kept = Path(name), Path("kept")
    path.rename(kept)
    path.write_text("b\n")
    kept.rename(path)


CHANGES: dict[str, tuple[str, Callable[[], object]]] = {
    "code": ("convs2s/words.py", edit("convs2s/words.py", "1", "2")),
    "code, put back": ("convs2s/words.py", lambda: put_back("convs2s/words.py")),
    "code, moved back": ("convs2s/words.py", lambda: move_back("convs2s/words.py")),
    "the stage itself": ("pipelines/stages/filter.py", edit("pipelines/stages/filter.py", "ONE", "1")),
    "an input": ("data/tokenized/train/source.txt", edit("data/tokenized/train/source.txt", "a", "b")),
    "an input, put back": (
        "data/tokenized/train/source.txt",
        lambda: put_back("data/tokenized/train/source.txt"),
    ),
    "an input, touched": (
        "data/tokenized/train/source.txt",
        lambda: os.utime("data/tokenized/train/source.txt", (0, 0)),
    ),
    "an input, gone": (
        "data/tokenized/train, data/tokenized/train/source.txt",
        Path("data/tokenized/train/source.txt").unlink,
    ),
    "a new input": ("data/tokenized/train", lambda: Path("data/tokenized/train/target.txt").touch()),
    "the digests": ("data/snapshot/filter.txt", lambda: put_back("data/snapshot/filter.txt")),
    "the values": ("data/snapshot/params.yaml", lambda: put_back("data/snapshot/params.yaml")),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_while_a_stage_runs_is_an_error_at_its_end(change: str) -> None:
    """The stage may have read either version, so DVC must not record its result."""
    name, act = CHANGES[change]
    with pytest.raises(ValueError, match=f"^{name} changed while the stage ran"):  # noqa: SIM117
        with unchanged("filter", "filter", SNAPSHOT):
            act()


@pytest.mark.parametrize("name", ["filter.txt", "params.yaml"])
def test_an_edited_snapshot_is_refused(name: str) -> None:
    """The stage would compute with other values than those that DVC records."""
    text = (SNAPSHOT.parent / name).read_text()
    (SNAPSHOT.parent / name).write_text(text.replace("175", "100", 1))
    with pytest.raises(ValueError, match=r"params.yaml and data/snapshot/filter.txt have different values"):  # noqa: SIM117
        with unchanged("filter", "filter", SNAPSHOT):
            pytest.fail("the stage has started")


def test_a_stage_that_fails_says_that_its_inputs_have_changed() -> None:
    """That may be the reason."""
    with pytest.raises(ValueError, match="unequal lines") as raised:  # noqa: SIM117
        with unchanged("filter", "filter", SNAPSHOT):
            CHANGES["an input"][1]()
            raise ValueError("unequal lines")
    (note,) = raised.value.__notes__
    assert note.startswith("data/tokenized/train/source.txt changed while the stage ran")


@pytest.mark.parametrize(
    ("change", "warning"),
    [
        (
            edit("params.yaml", "max_words: 175", "max_words: 100"),
            "filter: warning: params.yaml has changed: filter.max_words 175 -> 100. This run goes on with",
        ),
        (CHANGES["code"][1], "filter: warning: convs2s/words.py has changed. This stage will end without a"),
        (CHANGES["an input"][1], "filter: warning: data/tokenized/train/source.txt has changed. This stage"),
    ],
    ids=["a value", "code", "an input"],
)
def test_a_change_is_reported_at_once_and_only_once(
    change: Callable[[], object],
    warning: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A training may go on for a week."""
    monkeypatch.setattr(_inputs, "SECONDS", 0.01)
    said = ""
    try:
        with unchanged("filter", "filter", SNAPSHOT):
            change()
            deadline = time.monotonic() + 10
            while not said and time.monotonic() < deadline:
                time.sleep(0.05)
                said += capsys.readouterr().err
            time.sleep(0.1)
            said += capsys.readouterr().err
    except ValueError:
        assert "values" not in warning
    assert said.strip().startswith(warning)
    assert said.count("warning") == 1


def test_the_inputs_of_a_stage_are_those_that_dvc_knows(tmp_path: Path) -> None:
    """DVC resolves the templates of dvc.yaml itself; parameters are compared one by one."""
    folder = bare_repository(tmp_path, WITH_ENSEMBLE | {"download.folder": "texts"})
    params = load_params(folder / "params.yaml")
    with Repo(str(folder)) as repo:
        stages = list(repo.index.stages)
    assert len(stages) > 20
    for stage in stages:
        deps = [dep.def_path for dep in stage.deps if not isinstance(dep, ParamsDependency)]
        assert [str(path) for path in _inputs.dependencies(stage.addressing, params)] == deps


def test_a_renamed_clone_is_one_message(tmp_path: Path) -> None:
    """A late import would fail with a traceback, and DVC with the old path."""
    for fault in (None, ModuleNotFoundError("No module named 'convs2s.late'")):
        with (
            pytest.raises(FileNotFoundError, match=f"^{tmp_path} was renamed or removed while the stage ran"),
            unchanged("filter", "filter", SNAPSHOT),
        ):
            tmp_path.rename(tmp_path.with_name("renamed"))
            if fault:
                raise fault
        tmp_path.with_name("renamed").rename(tmp_path)
