"""DVC's databases and its run cache: private, and removed if damaged."""

import sqlite3
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from dvc.config import Config
from dvc.repo import Repo

from pipelines.repair.clone import repair
from pipelines.repair.databases import OWN
from tests.flows import toy

PIPELINE = "stages:\n  one:\n    cmd: cp zero one\n    deps: [zero]\n    outs: [one]\n"


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """Return a clone in which DVC has run a stage."""
    (tmp_path / "dvc.yaml").write_text(PIPELINE)
    (tmp_path / "zero").write_text("1\n")
    Repo.init(str(tmp_path), no_scm=True).close()
    assert repair(tmp_path) == []
    toy.dvc(tmp_path, "repro")
    return tmp_path


def databases(clone: Path) -> list[Path]:
    found = sorted((clone / OWN).rglob("cache.db"))
    assert found
    return found


@pytest.mark.fault("security")
def test_other_users_cannot_reach_the_databases(clone: Path) -> None:
    """DVC's default folder is open to all users, and so is everything it creates below one of ours."""
    assert stat.S_IMODE((clone / OWN).stat().st_mode) == 0o700
    assert Repo(str(clone)).site_cache_dir.startswith(str(clone / OWN))


@pytest.mark.fault("damage")
@pytest.mark.parametrize("content", [b"garbage" * 999, b"SQLite format 3\0" + b"\xff" * 8000])
def test_a_damaged_database_is_removed(clone: Path, content: bytes) -> None:
    """After a disk error, DVC alone would end with a DatabaseError every time."""
    for path in databases(clone):
        path.write_bytes(content)
    said = repair(clone)
    assert said and all("was damaged; removed it. DVC hashes" in line for line in said)
    assert toy.dvc(clone, "repro").endswith("Data and pipelines are up to date.")
    assert repair(clone) == []


@pytest.mark.fault("concurrency")
def test_a_database_in_use_stays(clone: Path) -> None:
    """While another process holds the lock, nobody can see whether the database is damaged."""
    path = databases(clone)[0]
    with sqlite3.connect(path) as database:
        database.execute("BEGIN EXCLUSIVE")
        assert repair(clone) == []
    assert path.exists()


@pytest.mark.fault("concurrency")
def test_a_damaged_database_stays_while_dvc_runs(clone: Path) -> None:
    """DVC would keep writing to a deleted file."""
    databases(clone)[0].write_bytes(b"garbage" * 999)
    command = [sys.executable, "-c", "import sys; sys.stdin.read()", "dvc"]
    with subprocess.Popen(command, cwd=clone, stdin=subprocess.PIPE) as process:
        with pytest.raises(ValueError, match=rf"process {process.pid}, while .*cache.db is damaged"):
            repair(clone)
        process.kill()


@pytest.mark.fault("damage")
@pytest.mark.parametrize("how", ["garbage", "gone", "cut", "cut before it had its name"])
def test_a_damaged_run_is_forgotten(clone: Path, how: str) -> None:
    """DVC drops only records that are not YAML; it misses other damage, and fails on an empty folder."""
    (record,) = (clone / ".dvc" / "cache" / "runs").glob("*/*/*")
    content = record.read_bytes()
    record.unlink()
    if how != "gone":
        name = record.with_name(".unfinished.tmp" if "before" in how else record.name)
        name.write_bytes(b"\xff\x00{[" if how == "garbage" else content[: content.index(b"outs:") + 20])
    (clone / "one").unlink()
    (clone / "dvc.lock").unlink()
    assert repair(clone) == [f"{record.parent} was damaged or empty; removed it."]
    toy.dvc(clone, "repro")
    assert (clone / "one").read_text() == "1\n"


def chosen(root: Path) -> str:
    return str(Config(str(root / ".dvc"))["core"]["site_cache_dir"])


def test_a_chosen_folder_stays_and_that_of_another_clone_does_not(tmp_path: Path) -> None:
    """A copied or moved clone must not write into the old one; a flow's copies share their clone's folder."""
    place = Path(".dvc", "config.local")
    for name in ("chosen", "moved", "moved/.dvc/tmp/flows/copy"):
        (tmp_path / name / ".dvc").mkdir(parents=True)
    places = {"chosen": tmp_path / "shared", "moved": tmp_path / "gone" / OWN}
    for name, chosen_place in places.items():
        (tmp_path / name / place).write_text(f"[core]\n    site_cache_dir = {chosen_place}\n")
    copy = tmp_path / "moved" / ".dvc" / "tmp" / "flows" / "copy"
    (copy / place).write_text(f"[core]\n    site_cache_dir = {tmp_path / 'moved' / OWN}\n")
    for name in ("chosen", "moved", "moved/.dvc/tmp/flows/copy"):
        repair(tmp_path / name)
    assert chosen(tmp_path / "chosen") == str(tmp_path / "shared")
    assert chosen(tmp_path / "moved") == chosen(copy) == str(tmp_path / "moved" / OWN)
    assert not (tmp_path / "gone").exists()


@pytest.mark.fault("surroundings")
@pytest.mark.parametrize("name", ["Übung 翻译", "a'b\"c$HOME", "a #b, c", "100%"])
def test_a_clone_may_have_any_name(tmp_path: Path, name: str) -> None:
    """DVC reads any name but writes only ASCII; the file's other values must stay."""
    place = tmp_path / name / ".dvc" / "config.local"
    place.parent.mkdir(parents=True)
    place.write_text('[remote "lab"]\n    url = /lab\n[core]\n    remote = lab\n')
    repair(tmp_path / name)
    repair(tmp_path / name)
    assert chosen(tmp_path / name) == str(tmp_path / name / OWN)
    config = Config(str(tmp_path / name / ".dvc"))
    assert (config["core"]["remote"], config["remote"]["lab"]["url"]) == ("lab", "/lab")


def test_a_faulty_configuration_is_named(tmp_path: Path) -> None:
    """DVC would fail as well, so the error must name the file."""
    (tmp_path / ".dvc").mkdir()
    (tmp_path / ".dvc" / "config").write_text("[core\n")
    with pytest.raises(ValueError, match=r"\.dvc/config: "):
        repair(tmp_path)
