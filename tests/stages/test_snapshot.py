"""The snapshot that all other stages depend on: values and code as they are when a run begins."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from convs2s.config.load import load_params
from pipelines.stages import checksums, snapshot

ROOT = Path(__file__).parents[2]
INPUTS = Path("params.yaml"), Path("convs2s"), Path("pipelines/stages")
SUMS, OUT = Path("data/checksums.txt"), Path("data/snapshot")
TABLE = {
    "one": ("filter.max_words", "tune"),
    "one-ensemble": (),
    "one@test": ("train.seeds", "download.test"),
}
CODE = "def run():\n    return 1  # one\n"


@pytest.fixture(autouse=True)
def _project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A project of three modules, with the repository's params.yaml."""
    monkeypatch.chdir(tmp_path)
    shutil.copy(ROOT / "params.yaml", tmp_path)
    monkeypatch.setattr(snapshot, "PARAMS", TABLE)
    for name in ("convs2s/words.py", "pipelines/stages/__main__.py", "pipelines/stages/one.py"):
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_text(CODE)


def replace(name: str, old: str, new: str) -> Callable[[], object]:
    return lambda: Path(name).write_text(Path(name).read_text().replace(old, new, 1))


def test_the_snapshot_has_all_values_and_the_code_of_each_stage() -> None:
    """Each stage depends on the file of its name; all read their values from the copy of params.yaml."""
    checksums.run(*INPUTS, SUMS)
    snapshot.run(*INPUTS, SUMS, OUT)
    assert load_params(OUT / "params.yaml") == load_params()
    found = {path.stem: path.read_text().splitlines() for path in OUT.glob("*.txt")}
    params = {name: [line for line in lines if line.startswith("param ")] for name, lines in found.items()}
    assert set(found) == {*TABLE, "files"}
    assert params["one"][0] == "param filter.max_words 175"
    assert params["one"][1].startswith('param tune {"alphas": [')
    assert params["one-ensemble"] == []
    assert [line.split(" ")[1] for line in params["one@test"]] == ["train.seeds", "download.test"]
    for name in TABLE:
        code = [line.split(" ")[2] for line in found[name] if line.startswith("code ")]
        assert code == ["pipelines.stages.__main__", "pipelines.stages.one"]


@pytest.mark.parametrize(
    ("edit", "name"),
    [
        (replace("params.yaml", "max_words: 175", "max_words: 174"), "params.yaml"),
        (replace("convs2s/words.py", "1", "2"), "convs2s/words.py"),
        (replace("convs2s/words.py", "one", "two"), "convs2s/words.py"),
        (lambda: Path("convs2s/new.py").write_text(""), "convs2s/new.py"),
        (lambda: Path("convs2s/words.py").unlink(), "convs2s/words.py"),
    ],
)
def test_a_change_between_the_two_stages_is_an_error(edit: Callable[[], object], name: str) -> None:
    """One of them was then recorded with what the other has read. DVC must run both again."""
    checksums.run(*INPUTS, SUMS)
    edit()
    with pytest.raises(ValueError, match=f"^{name} changed while this run was beginning"):
        snapshot.run(*INPUTS, SUMS, OUT)
    assert not SUMS.exists()
    assert not OUT.exists()


def test_a_comment_in_params_yaml_is_no_change() -> None:
    """DVC does not run `checksums` again for it, so `snapshot` must accept it."""
    checksums.run(*INPUTS, SUMS)
    replace("params.yaml", "max_words", "# a comment\n  max_words")()
    snapshot.run(*INPUTS, SUMS, OUT)
    assert "# a comment" in (OUT / "params.yaml").read_text()
