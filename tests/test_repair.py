"""DVC's own files after a kill or a disk error; `tests.faults` has whole runs."""

import runpy
import shutil
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from secrets import token_urlsafe

import pytest
from dvc.config import Config
from dvc.lock import make_lock
from dvc.repo import Repo
from ruamel.yaml import YAML

from pipelines.repair import DAMAGED, LOCK, RUNS, SITE, repair
from tests.flows import toy

ROOT = Path(__file__).parent.parent
PIPELINE = """
stages:
  one: {cmd: cp zero/number one, deps: [zero], outs: [one]}
  two: {cmd: cp -r zero two, deps: [zero], params: [values.yaml: [key]], outs: [two]}
"""
DATABASE = f"{SITE}/**/cache.db"
DAMAGE: dict[str, tuple[str, Callable[[bytes], bytes]]] = {
    "empty rwlock": (".dvc/tmp/rwlock", lambda _: b""),
    "truncated rwlock": (".dvc/tmp/rwlock", lambda _: b'{"write": {"one'),
    "garbage database": (DATABASE, lambda _: b"garbage" * 999),
    "garbage in a database": (DATABASE, lambda _: b"SQLite format 3\0" + b"\xff" * 8000),
    "truncated dvc.lock": ("dvc.lock", lambda content: content[:-5]),
    "dvc.lock cut after a key": ("dvc.lock", lambda content: content[: content.index(b"deps:") + 5]),
    "empty dvc.lock": ("dvc.lock", lambda _: b""),
}


@pytest.fixture(scope="session")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a copy of a clone in which DVC has run two stages."""
    clone = tmp_path_factory.mktemp("repair") / "clone"
    (clone / "zero").mkdir(parents=True)
    (clone / "zero" / "number").write_text("1\n")
    (clone / "dvc.yaml").write_text(PIPELINE)
    (clone / "values.yaml").write_text("key: [{kind: files, seed: null}]\n")
    Repo.init(str(clone), no_scm=True).close()
    assert repair(clone) == []
    toy.dvc(clone, "repro")
    return clone.rename(clone.with_name("saved"))


@pytest.fixture
def clone(saved: Path) -> Iterator[Path]:
    """Return the clone, in its place, because its configuration has its path."""
    yield (clone := Path(shutil.copytree(saved, saved.with_name("clone"))))
    shutil.rmtree(clone)


def damage(clone: Path, name: str) -> None:
    pattern, change = DAMAGE[name]
    path = next(clone.glob(pattern))
    path.write_bytes(change(path.read_bytes()))


@pytest.mark.parametrize("name", DAMAGE)
def test_dvc_works_again(
    name: str, clone: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """DVC alone would fail every time; it makes the output and its record again."""
    damage(clone, name)
    monkeypatch.chdir(clone)
    monkeypatch.setattr(sys, "argv", ["repair"])
    runpy.run_path(repair.__code__.co_filename, run_name="__main__")
    assert f"was damaged; it is now in {clone / DAMAGED}.\n" in capsys.readouterr().err
    (clone / "one").unlink()
    toy.dvc(clone, "repro")
    assert (clone / "one").read_text() == "1\n"
    assert list(YAML(typ="safe").load(clone / "dvc.lock")["stages"]) == ["one", "two"]
    assert repair(clone) == []


def test_unfinished_copies_are_removed(clone: Path) -> None:
    """A kill of `dvc checkout` leaves them in outputs, where the stage `package` would copy them."""
    unfinished, mine = clone / "data" / f".{token_urlsafe(16)}.tmp", clone / "data" / ".notes.tmp"
    mine.parent.mkdir()
    for path in (unfinished, mine):
        path.touch()
    assert repair(clone) == []
    assert (unfinished.exists(), mine.exists()) == (False, True)


def test_an_empty_folder_of_the_run_cache_is_removed(clone: Path) -> None:
    """A kill can come before DVC has written a record into it; DVC would then fail every time."""
    (record,) = [path for path in (clone / RUNS).glob("*/*/*") if "zero/number" in path.read_text()][:1]
    record.unlink()
    (clone / "dvc.lock").unlink()
    with pytest.raises(AssertionError, match=r"join\(\) argument must be str"):  # as docs/reliability.md says
        toy.dvc(clone, "repro")
    assert repair(clone) == []
    toy.dvc(clone, "repro")
    assert record.is_file()


def test_make_repro_begins_with_repair_and_check() -> None:
    """Both come before DVC reads anything; `make install` makes a new clone's databases private."""

    def recipe(target: str, *options: str) -> list[str]:
        command = ["make", "--no-print-directory", "--dry-run", *options, target]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
        return done.stdout.splitlines()

    first = ["python -m pipelines.repair", "python -m pipelines.check", "dvc repro"]
    assert recipe("repro", "--old-file=install")[:3] == first
    assert "python -m pipelines.repair" in recipe("install", "--always-make")


def test_nothing_changes_while_dvc_is_at_work(clone: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What looks damaged may be a file that DVC is writing at this moment."""
    monkeypatch.setattr("dvc.lock.DEFAULT_TIMEOUT", 0.01)
    for name in ("empty rwlock", "garbage database", "truncated dvc.lock"):
        damage(clone, name)
    with make_lock(str(clone / LOCK)):
        assert repair(clone) == []
    assert len(repair(clone)) == 3


def test_an_unreadable_lock_is_replaced_by_that_of_the_last_commit(clone: Path) -> None:
    """A clone whose data was pulled has nothing in the run cache. A merge conflict is not damage."""
    whole = (clone / "dvc.lock").read_text()
    toy.run(clone, "git", "init", "--quiet")
    toy.commit(clone)
    damage(clone, "truncated dvc.lock")
    repair(clone)
    assert (clone / "dvc.lock").read_text() == whole
    (clone / "dvc.lock").write_text("stages:\n<<<<<<< HEAD\n  a: 1\n=======\n  a: 2\n>>>>>>> other\n")
    assert repair(clone) == []


def test_databases_are_private_wherever_the_clone_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """DVC's default folder is open to all users. The other values of the local configuration stay.

    A folder that was copied with another mode is closed again; a user's variable takes precedence.
    """
    clone = tmp_path / "Übung 翻译 a'b\"c$HOME #b, 100%"
    clone.mkdir()
    Repo.init(str(clone), no_scm=True).close()
    local = clone / ".dvc" / "config.local"
    local.write_text('[remote "lab"]\n    url = /lab\n[core]\n    site_cache_dir = /of/another/clone\n')
    for _ in range(2):
        repair(clone)
        assert stat.S_IMODE((clone / SITE).stat().st_mode) == 0o700
        assert Repo(str(clone)).site_cache_dir.startswith(str(clone / SITE))
        assert Config(str(clone / ".dvc"))["remote"]["lab"]["url"] == "/lab"
        (clone / SITE).chmod(0o755)
    monkeypatch.setenv("DVC_SITE_CACHE_DIR", str(tmp_path / "elsewhere"))
    assert Repo(str(clone)).site_cache_dir.startswith(str(tmp_path / "elsewhere"))
