"""What a user's machine has set or lacks: git, a merge, variables, a place that cannot be written."""

import contextlib
import os
import runpy
import subprocess
import threading
from collections.abc import Iterator, Mapping
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any
from unittest import mock

import httpx
import pytest
from dvc.repo import Repo

from pipelines import check
from pipelines.flows import machine, workspace
from pipelines.flows.dvc_stage import environment
from pipelines.preset import render_preset
from pipelines.repair import repair
from pipelines.report import runs
from pipelines.report.run import open_run
from tests.flows import toy

ROOT = Path(__file__).parent.parent


@pytest.fixture
def unpacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Work in a folder of this project as from an archive, without git."""
    Repo.init(str(tmp_path), no_scm=True).close()
    (tmp_path / ".dvc" / "config").write_text("")
    (tmp_path / "data" / "tatoeba-en-de").mkdir(parents=True)
    (tmp_path / "params.yaml").write_text(render_preset("tatoeba-en-de"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def fault(capsys: pytest.CaptureFixture[str]) -> str:
    """Return the message with which `python -m pipelines.check` exits, which is all that it prints."""
    with pytest.raises(SystemExit):
        check.main([])
    return capsys.readouterr().err


def test_a_folder_without_git_says_what_to_do(unpacked: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """DVC alone says that it is not a git repository. What the message advises must help."""
    message = fault(capsys)
    assert message.startswith(f"check: error: {unpacked} is not a git repository, which DVC expects. Clone ")
    for action in (lambda: open_run("HEAD", unpacked, unpacked), lambda: runs.read_rows(unpacked, 1)):
        with pytest.raises(
            ValueError, match=r"expected a git repository with a commit: .*git init && git add"
        ):
            action()
    toy.run(unpacked, "sh", "-c", message.partition("archive: ")[2])
    check.main([])
    check.check_git(unpacked)


def test_a_missing_git_is_named(unpacked: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """DVC needs it only for experiments, but these end in a traceback."""
    (unpacked / ".git").mkdir()
    monkeypatch.setenv("PATH", str(unpacked))
    check.main([])
    with pytest.raises(ValueError, match=r"git: expected this program on PATH, found none\. Install it\.$"):
        runs.read_rows(unpacked, 1)


def test_dvc_may_be_set_to_do_without_git(unpacked: Path) -> None:
    """DVC reads the option `no_scm` from the local configuration, too; then git is not missed."""
    (unpacked / ".dvc" / "config.local").write_text("[core]\n no_scm = true\n")
    check.main([])


def test_a_repository_of_another_user_says_what_to_do(
    unpacked: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Git refuses it: `make runs` ended in a traceback of pandas, a flow after it had started a server."""
    toy.run(unpacked, "git", "init", "--quiet")
    toy.commit(unpacked)
    monkeypatch.setenv("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    check.main([])  # DVC itself runs stages
    assert runs.main(["1"]) == 1
    message = capsys.readouterr().err
    assert "dubious ownership" in message
    assert f"git config --global --add safe.directory {unpacked}" in message
    with pytest.raises(ValueError, match=r"safe\.directory"):
        open_run("HEAD", unpacked, unpacked)
    monkeypatch.setattr(machine, "ROOT", unpacked)
    monkeypatch.setattr(machine, "run", lambda *_: pytest.fail("the run has started"))
    with pytest.raises(ValueError, match=r"safe\.directory"):
        machine.run_command(machine.parser().parse_args(["run"]))


@pytest.mark.parametrize("start", ["", "schema: '2.0'\n"])
@pytest.mark.parametrize("name", ["params.yaml", "dvc.yaml", "dvc.lock"])
def test_a_merge_conflict_says_what_to_do(
    name: str, start: str, unpacked: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """DVC says that the YAML is invalid. Nothing is set aside as damaged; a flow starts no server."""
    toy.run(unpacked, "git", "init", "--quiet")
    toy.commit(unpacked)
    conflict = f"{start}<<<<<<< HEAD\na: 1\n=======\na: 2\n>>>>>>> other\n"
    (unpacked / name).write_text(conflict)
    assert repair(unpacked) == []
    assert (unpacked / name).read_text() == conflict
    advice = "git checkout --ours dvc.lock" if name == "dvc.lock" else f"git add {name}"
    expected = f"{name}: expected no conflicts, found those of a merge."
    message = fault(capsys)
    assert message.startswith(f"check: error: {expected}") and advice in message
    monkeypatch.setattr(machine, "ROOT", unpacked)
    monkeypatch.setattr(machine, "run", lambda *_: pytest.fail("the run has started"))
    with pytest.raises(ValueError, match=expected):
        machine.run_command(machine.parser().parse_args(["run"]))


def test_the_advice_for_a_conflict_of_dvc_lock_resolves_it(tmp_path: Path) -> None:
    """Two branches with results of their own; both have them in the cache."""
    repo = toy.make(tmp_path / "toy")
    for branch, dropout in (("mine", 0.25), ("theirs", 0.3)):
        toy.run(repo, "git", "checkout", "--quiet", "-b", branch, "main")
        toy.set_params(repo, {"train.dropout": dropout})
        toy.dvc(repo, "repro")
        toy.commit(repo)
    merge = subprocess.run(
        ["git", "merge", "mine"], cwd=repo, env={**os.environ, **toy.IDENTITY}, check=False
    )
    assert merge.returncode != 0
    toy.run(repo, "git", "checkout", "--ours", "params.yaml", "dvc.lock")
    toy.run(repo, "git", "checkout", "--theirs", "dvc.lock")
    check.check_merge(repo)
    toy.dvc(repo, "repro")
    assert "dropout-0.3" in (repo / "data" / "trained" / "1" / "content").read_text()


def test_a_place_that_cannot_be_written_is_one_message(
    unpacked: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """`make repro` ended in a traceback where the installation belonged to another user."""
    monkeypatch.setattr(os, "access", lambda path, mode: mode != os.W_OK)
    monkeypatch.setattr("sys.argv", ["repair"])
    with pytest.raises(SystemExit):
        runpy.run_path(repair.__code__.co_filename, run_name="__main__")
    message = capsys.readouterr().err
    assert message.startswith(f"repair: error: {unpacked}: expected a folder that this user can write")
    assert message.count("\n") == 1


@contextlib.contextmanager
def set_environment(**variables: str) -> Iterator[Mapping[str, str]]:
    """Yield the environment of server, worker and flow runs that a user starts with these variables."""
    with mock.patch.dict(os.environ, variables), contextlib.chdir(ROOT):
        machine.set_environment(machine.ADDRESS, "user:password")
        yield os.environ


def test_no_proxy_is_asked_for_what_is_on_this_machine() -> None:
    """Asked through a proxy, the server never answers, and `make flow` would wait for ever."""

    class Answer(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Answer) as server, set_environment(http_proxy="http://127.0.0.1:9"):
        threading.Thread(target=server.handle_request).start()
        status = machine.status(f"http://127.0.0.1:{server.server_port}/api")
    assert status == httpx.codes.OK
    with set_environment(no_proxy="example.org") as env:
        assert env["no_proxy"].split(",") == ["example.org", "127.0.0.1", "localhost", "::1"]


def test_a_flow_works_on_its_own_clone_whatever_is_set(tmp_path: Path) -> None:
    """Its processes are known by PREFECT_HOME; with a hook's variables, git would change another clone."""
    of_user = {
        "PREFECT_HOME": str(tmp_path),
        "PREFECT_PROFILE": "work",
        "PREFECT_PROFILES_PATH": str(tmp_path),
    }
    with set_environment(
        GIT_DIR=str(tmp_path), GIT_INDEX_FILE="index", PREFECT_LOGGING_LEVEL="DEBUG", **of_user
    ) as env:
        assert env["PREFECT_HOME"] == str(workspace.HOME)
        assert env["PREFECT_LOGGING_LEVEL"] == "DEBUG"
        assert not {"GIT_DIR", "GIT_INDEX_FILE", "PREFECT_PROFILE", "PREFECT_PROFILES_PATH"} & env.keys()


def test_stages_of_a_flow_need_no_login_shell(monkeypatch: pytest.MonkeyPatch) -> None:
    """DVC runs commands in SHELL, which is nologin for the users of many services."""
    monkeypatch.setenv("SHELL", "/usr/sbin/nologin")
    assert environment(None)["SHELL"] == "/bin/sh"


def test_make_in_a_hook_works_on_its_own_clone(tmp_path: Path) -> None:
    """Git sets variables for its hooks; DVC runs commands in SHELL, which a service's user may not have."""
    variables = {name: str(tmp_path) for name in workspace.OF_ANOTHER_REPOSITORY}
    command = ["make", "--silent", "--eval=show: ; @env", "show"]
    env = {**os.environ, **variables, "SHELL": "/usr/sbin/nologin"}
    shown = subprocess.check_output(command, cwd=ROOT, env=env, text=True).splitlines()
    assert not [line for line in shown if line.partition("=")[0] in variables]
    assert "SHELL=/bin/sh" in shown
