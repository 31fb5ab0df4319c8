"""DVC's own files after a kill or a disk error; `tests.faults` has whole runs."""

import json
import os
import runpy
import shutil
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from secrets import token_urlsafe

import pytest
from dvc.config import Config
from dvc.repo import Repo
from ruamel.yaml import YAML

from pipelines.repair import DAMAGED, SITE, commands_lock, is_truncated, repair
from tests.flows import toy

PIPELINE = """
stages:
  one: {cmd: cp zero/number one, deps: [zero], outs: [one]}
  two: {cmd: cp -r zero two, deps: [zero], params: [values.yaml: [key]], outs: [two]}
"""
# PIDs repeat after a container restarts, and DVC would wait for the program that has one now.
OTHERS = json.dumps({"write": {"one": {"pid": os.getpid(), "cmd": "dvc repro"}}, "read": {}}).encode()
RUN = ".dvc/cache/runs/*/*/*"
DATABASE = f"{SITE}/**/cache.db"
DAMAGE: dict[str, tuple[str, Callable[[bytes], bytes]]] = {
    "empty rwlock": (".dvc/tmp/rwlock", lambda _: b""),
    "rwlock of another program": (".dvc/tmp/rwlock", lambda _: OTHERS),
    "garbage database": (DATABASE, lambda _: b"garbage" * 999),
    "garbage in a database": (DATABASE, lambda _: b"SQLite format 3\0" + b"\xff" * 8000),
    "truncated run": (RUN, lambda content: content[: content.index(b"outs:") + 20]),
    "run cut between lines": (RUN, lambda content: content[: content.index(b"outs:")]),
    "garbage run": (RUN, lambda _: b"\xff\x00{["),
    "truncated dvc.lock": ("dvc.lock", lambda content: content[:-5]),
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
    if pattern == RUN:  # so that DVC looks there
        (clone / "one").unlink()
        (clone / "dvc.lock").unlink()


def repeats(clone: Path) -> None:
    """Check that DVC makes the output and its record again, and nothing is left to repair."""
    toy.dvc(clone, "repro")
    assert (clone / "one").read_text() == "1\n"
    assert "one" in YAML(typ="safe").load(clone / "dvc.lock")["stages"]
    assert repair(clone) == []


@pytest.mark.parametrize("name", DAMAGE)
def test_dvc_works_again(
    name: str, clone: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """DVC alone would fail every time, wait forever, or restore too few outputs."""
    damage(clone, name)
    monkeypatch.chdir(clone)
    monkeypatch.setattr(sys, "argv", ["repair"])
    runpy.run_path(repair.__code__.co_filename, run_name="__main__")
    assert (f"was damaged; it is now in {clone / DAMAGED}." in capsys.readouterr().err) != ("rwlock" in name)
    repeats(clone)


@pytest.mark.parametrize("unfinished", [False, True])
def test_a_run_without_its_record_is_forgotten(unfinished: bool, clone: Path) -> None:
    """A kill leaves its folder empty, or with a temporary file that DVC would take for the record."""
    record = next(clone.glob(RUN))
    record.rename(record.with_name(".x.tmp") if unfinished else clone / "lost")
    assert len(repair(clone)) == 1
    repeats(clone)


def test_unfinished_copies_are_removed(clone: Path) -> None:
    """A kill of `dvc checkout` leaves them in outputs, where the stage `package` would copy them."""
    unfinished, mine = clone / "data" / f".{token_urlsafe(16)}.tmp", clone / "data" / ".notes.tmp"
    mine.parent.mkdir()
    for path in (unfinished, mine):
        path.touch()
    assert repair(clone) == []
    assert (unfinished.exists(), mine.exists()) == (False, True)


@contextmanager
def dvc_command(clone: Path) -> Iterator[None]:
    """Run a process that looks like a DVC command in the clone."""
    command = [sys.executable, "-c", "import sys; sys.stdin.read()", "dvc"]
    with subprocess.Popen(command, cwd=clone, stdin=subprocess.PIPE):
        yield


@pytest.mark.parametrize("running", [dvc_command, commands_lock])
def test_nothing_changes_while_dvc_runs(
    running: Callable[[Path], AbstractContextManager[None]], clone: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It still has to take itself off the list, and would go on writing to a file that is gone."""
    monkeypatch.setattr("dvc.lock.DEFAULT_TIMEOUT", 0.01)
    for name in ("empty rwlock", "garbage database", "truncated dvc.lock"):
        damage(clone, name)
    with running(clone):
        assert repair(clone) == []
        assert (clone / ".dvc" / "tmp" / "rwlock").exists()
    assert len(repair(clone)) == 2


def test_a_truncated_lock_is_that_of_the_last_commit(clone: Path) -> None:
    """A clone whose data was pulled has nothing in the run cache."""
    whole = (clone / "dvc.lock").read_text()
    toy.run(clone, "git", "init", "--quiet")
    toy.commit(clone)
    damage(clone, "truncated dvc.lock")
    repair(clone)
    assert (clone / "dvc.lock").read_text() == whole


def test_a_truncated_lock_is_recognized_wherever_it_is_cut(clone: Path) -> None:
    """Half a number or an output without a size must not pass for a record; conflicts are the user's."""
    whole = (clone / "dvc.lock").read_text()
    conflict = "stages:\n<<<<<<< HEAD\n  a: 1\n=======\n  a: 2\n>>>>>>> other\n"
    assert not any(is_truncated(text, "stages") for text in (whole, conflict, "schema: '2.0'\nstages: {}\n"))
    expected = YAML(typ="safe").load(whole)["stages"]
    for end in range(len(whole)):
        if not is_truncated(whole[:end], "stages"):  # cut between lines: DVC notices what is missing
            *others, (name, last) = YAML(typ="safe").load(whole[:end])["stages"].items()
            assert others == list(expected.items())[: len(others)]
            assert "outs" not in last or last == expected[name], end


def test_databases_are_private_wherever_the_clone_is(tmp_path: Path) -> None:
    """DVC's default folder is open to all users. The other values of the local configuration stay."""
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


def test_help_is_printed(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """The troubleshooting page sends people to this command."""
    monkeypatch.setattr(sys, "argv", ["repair", "--help"])
    with pytest.raises(SystemExit):
        runpy.run_path(repair.__code__.co_filename, run_name="__main__")
    assert "Set aside DVC's own files" in capsys.readouterr().out
