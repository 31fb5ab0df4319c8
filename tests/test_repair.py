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
    unfinished = clone / "data" / f".{token_urlsafe(16)}.tmp"
    mine = clone / "data" / ".notes.tmp"
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


def recipe(target: str, *options: str) -> list[str]:
    """Return the commands that make would run."""
    command = ["make", "--no-print-directory", "--dry-run", *options, target]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


def test_make_repro_begins_with_repair_and_check() -> None:
    """Both come before DVC reads anything."""
    first = ["python -m pipelines.repair", "python -m pipelines.check", "dvc repro"]
    assert recipe("repro", "--old-file=install")[:3] == first


def test_make_install_makes_the_databases_private() -> None:
    """In a new clone, `dvc` may be the first command that a user tries."""
    assert "python -m pipelines.repair" in recipe("install", "--always-make")


def test_nothing_changes_while_dvc_is_at_work(clone: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What looks damaged may be a file that DVC is writing at this moment."""
    monkeypatch.setattr("dvc.lock.DEFAULT_TIMEOUT", 0.01)
    for name in ("empty rwlock", "garbage database", "truncated dvc.lock"):
        damage(clone, name)
    with make_lock(str(clone / LOCK)):
        assert repair(clone) == []
    assert len(repair(clone)) == 3


@pytest.fixture
def committed(clone: Path) -> Path:
    """The clone with all of its files in git."""
    toy.run(clone, "git", "init", "--quiet")
    toy.commit(clone)
    return clone


def test_an_unreadable_lock_is_replaced_by_that_of_the_last_commit(committed: Path) -> None:
    """A clone whose data was pulled has nothing in the run cache."""
    whole = (committed / "dvc.lock").read_text()
    damage(committed, "truncated dvc.lock")
    repair(committed)
    assert (committed / "dvc.lock").read_text() == whole


def test_a_merge_conflict_is_not_damage(committed: Path) -> None:
    """Only the user knows which side is right, so the file stays as git left it."""
    conflict = "stages:\n<<<<<<< HEAD\n  a: 1\n=======\n  a: 2\n>>>>>>> other\n"
    (committed / "dvc.lock").write_text(conflict)
    assert repair(committed) == []
    assert (committed / "dvc.lock").read_text() == conflict


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    """A clone with an odd name, whose local configuration is that of another clone."""
    clone = tmp_path / "Übung 翻译 a'b\"c$HOME #b, 100%"
    clone.mkdir()
    Repo.init(str(clone), no_scm=True).close()
    local = clone / ".dvc" / "config.local"
    local.write_text('[remote "lab"]\n    url = /lab\n[core]\n    site_cache_dir = /of/another/clone\n')
    return clone


def test_databases_are_private_wherever_the_clone_is(copied: Path) -> None:
    """DVC's default folder is open to all users."""
    repair(copied)
    assert stat.S_IMODE((copied / SITE).stat().st_mode) == 0o700
    assert Repo(str(copied)).site_cache_dir.startswith(str(copied / SITE))


def test_databases_that_have_become_open_are_closed_again(copied: Path) -> None:
    """A copy of a clone may have other modes."""
    repair(copied)
    (copied / SITE).chmod(0o755)
    repair(copied)
    assert stat.S_IMODE((copied / SITE).stat().st_mode) == 0o700


def test_other_values_of_the_local_configuration_stay(copied: Path) -> None:
    """Users keep remotes and passwords there."""
    for _ in range(2):
        repair(copied)
        assert Config(str(copied / ".dvc"))["remote"]["lab"]["url"] == "/lab"


def test_a_users_variable_says_where_the_databases_are(copied: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A clone on a network disk may need them on a local one."""
    repair(copied)
    monkeypatch.setenv("DVC_SITE_CACHE_DIR", str(copied.parent / "elsewhere"))
    assert Repo(str(copied)).site_cache_dir.startswith(str(copied.parent / "elsewhere"))


def test_databases_are_not_kept_where_others_can_write(
    copied: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They hold pickles, so whoever can replace them runs code as the user of DVC."""
    shared = tmp_path / "shared"
    shared.mkdir()
    monkeypatch.setenv("DVC_SITE_CACHE_DIR", str(shared))
    repair(copied)
    shared.chmod(0o1777)
    with pytest.raises(PermissionError, match=r"^DVC_SITE_CACHE_DIR: .* others may write to .*/shared "):
        repair(copied)
