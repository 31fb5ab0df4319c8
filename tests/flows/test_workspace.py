"""The workspace of a flow: when it refuses to start, and copies with other parameters."""

import shutil
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from convs2s.config.load import load_params
from pipelines.flows import experiment
from pipelines.flows.experiment import claim
from pipelines.flows.form import RunParams
from pipelines.repair import SITE
from tests.flows import toy
from tests.light_dvc import light_dvc


def copy_of(repo: Path, name: str, *overrides: str) -> Path:
    """Copy a workspace with changed values."""
    return experiment.copy_workspace(repo, name, *RunParams(overrides=[*overrides]).render(repo))


def test_a_workspace_is_locked_by_one_run(repo: Path) -> None:
    """Two flows would run the same stages twice."""
    with claim(repo), pytest.raises(ValueError, match="another flow run works in"), claim(repo):
        pytest.fail("both have claimed it")
    with claim(repo):
        pass  # once the first has ended, another may begin


def test_the_databases_of_dvc_are_private_in_a_flow(repo: Path) -> None:
    """DVC makes them open to all users; a flow closes them, as `make repro` does."""
    shutil.rmtree(repo / SITE, ignore_errors=True)
    with claim(repo):
        assert stat.S_IMODE((repo / SITE).stat().st_mode) == 0o700


def test_a_copy_is_the_workspace_with_other_values(repo: Path) -> None:
    """Files that git does not have yet, or not in this state, are copied as they are."""
    (repo / "notes.txt").write_text("new")
    (repo / "toy.py").write_text((repo / "toy.py").read_text() + "\n# edited\n")
    copy = copy_of(repo, "one", "train.dropout=0.3")
    for name in ("notes.txt", "toy.py"):
        assert (copy / name).read_text() == (repo / name).read_text()
    assert load_params(copy / "params.yaml").train.dropout == 0.3


def test_a_copy_leaves_the_workspace_as_it_is(repo: Path) -> None:
    """The user may be in the middle of an edit."""
    (repo / "notes.txt").write_text("new")
    status = toy.run(repo, "git", "status", "--porcelain")
    params = (repo / "params.yaml").read_text()
    copy_of(repo, "one", "train.dropout=0.3")
    assert toy.run(repo, "git", "status", "--porcelain") == status
    assert (repo / "params.yaml").read_text() == params


def test_a_copy_has_the_inputs_that_git_ignores(repo: Path) -> None:
    """params.yaml names them: the user's texts, and models to start from or to translate with."""
    toy.set_params(repo, {"train.start_from": "data/start", "augment.models": "data/reverse"})
    toy.set_params(repo, {"augment.text": "data/more.de"})
    names = ["data/own/mine.txt", "data/start/model.json", "data/reverse/model.json", "data/more.de"]
    for name in names:
        (repo / name).parent.mkdir(parents=True, exist_ok=True)
        (repo / name).write_text(name)
    copy = copy_of(repo, "one")
    for name in names:
        assert (copy / name).read_text() == name


def test_stages_that_have_run_do_not_run_again_in_a_copy(repo: Path) -> None:
    """It has dvc.lock, and shares the cache of the workspace."""
    toy.dvc(repo, "repro", "download")
    copy = copy_of(repo, "one", "train.dropout=0.3")
    assert (copy / "dvc.lock").read_text() == (repo / "dvc.lock").read_text()
    assert "is cached - skipping run" in toy.dvc(copy, "repro", "download")


def test_a_copy_is_used_again_with_what_it_has(repo: Path) -> None:
    """A training that was interrupted in it goes on from its checkpoint."""
    copy = copy_of(repo, "one", "train.dropout=0.3")
    (copy / "data").mkdir(exist_ok=True)
    (copy / "data" / "checkpoint").write_text("kept")
    again = copy_of(repo, "one", "train.dropout=0.3")
    assert (again / "data" / "checkpoint").read_text() == "kept"


def test_a_copy_gets_the_texts_of_a_folder_with_any_name(repo: Path) -> None:
    """Git would take the name for a pattern, and list what is in another folder."""
    toy.set_params(repo, {"download.folder": "data/[own]*"})
    for name in ("data/[own]*/mine.txt", "data/o/other.txt"):
        (repo / name).parent.mkdir(exist_ok=True)
        (repo / name).write_text("text")
    copy = copy_of(repo, "one")
    assert (copy / "data/[own]*/mine.txt").is_file()
    assert not (copy / "data/o").exists()


def test_a_copy_reaches_texts_on_another_disk(repo: Path, tmp_path: Path) -> None:
    """A corpus may be too large for the disk of the clone, which then has a link to it."""
    (tmp_path / "big").mkdir()
    (tmp_path / "big" / "a.txt").write_text("text")
    (repo / "data" / "linked").symlink_to(tmp_path / "big")
    toy.set_params(repo, {"download.folder": "data/linked"})
    toy.dvc(repo, "repro", "download")
    copy = copy_of(repo, "one")
    assert (copy / "data" / "linked" / "a.txt").read_text() == "text"
    toy.dvc(copy, "repro", "download")


def test_a_copy_reaches_the_same_remotes(repo: Path) -> None:
    """The path of a remote may be relative to the clone, and its credentials in the local configuration."""
    toy.dvc(repo, "remote", "add", "--default", "store", "../store")
    toy.dvc(repo, "remote", "add", "--local", "bucket", "s3://bucket/x")
    toy.dvc(repo, "remote", "modify", "--local", "bucket", "access_key_id", "me")
    toy.dvc(repo, "repro", "download")
    copy = copy_of(repo, "one")
    toy.dvc(copy, "push", "download")
    assert (repo / ".." / "store" / "files").is_dir()
    assert "access_key_id = me" in (copy / ".dvc" / "config.local").read_text()


def test_copies_cost_no_disk_and_cannot_spoil_the_cache(repo: Path) -> None:
    """Their outputs are read-only links to it; the workspace, where people edit, has files of its own."""
    with light_dvc():
        toy.dvc(repo, "repro")
        copies = [copy_of(repo, name, "train.dropout=0.3") for name in ("one", "two")]
        for copy in copies:
            toy.dvc(copy, "repro")
    one, two = ([copy / "data" / name / "content" for name in ("raw", "trained/1")] for copy in copies)
    assert [path.stat().st_ino for path in one] == [path.stat().st_ino for path in two]
    assert {path.stat().st_mode & 0o777 for path in one} == {0o444}
    toy.set_params(copies[0], {"train.dropout": 0.4})
    toy.dvc(copies[0], "repro")
    assert "dropout-0.4" in one[1].read_text()
    assert "dropout-0.3" in two[1].read_text()


def in_a_subfolder(repo: Path, tmp_path: Path) -> Path:
    """Move the clone into a folder of a larger repository, which has edits of its own."""
    place = tmp_path / "larger" / "papers" / "a clone"
    place.parent.mkdir(parents=True)
    (tmp_path / "larger" / "notes.txt").write_text("committed\n")
    shutil.rmtree(repo / ".git")
    repo.rename(place)
    toy.run(tmp_path / "larger", "git", "init", "--quiet")
    toy.commit(tmp_path / "larger")
    (tmp_path / "larger" / "notes.txt").write_text("edited\n")
    return place


def in_a_worktree(repo: Path, tmp_path: Path) -> Path:
    """Return a linked git worktree of the clone."""
    toy.run(repo, "git", "worktree", "add", "--quiet", str(tmp_path / "tree"))
    return tmp_path / "tree"


@pytest.mark.parametrize("place", [in_a_subfolder, in_a_worktree])
def test_the_clone_need_not_be_the_top_of_a_repository(
    place: Callable[[Path, Path], Path], repo: Path, tmp_path: Path
) -> None:
    """A copy then lies as deep in its git worktree as the clone in its repository."""
    repo = place(repo, tmp_path)
    before = toy.run(repo, "git", "status", "--porcelain")
    copy = copy_of(repo, "one", "train.dropout=0.3")
    assert load_params(copy / "params.yaml").train.dropout == 0.3
    with light_dvc():
        toy.dvc(copy, "repro")
    assert copy_of(repo, "one", "train.dropout=0.3") == copy
    experiment.keep_experiment(repo, copy, "kept")
    assert not [*(repo / ".dvc" / "tmp" / "flows").iterdir()]
    assert toy.dvc(repo, "exp", "list", "--name-only") == "kept"
    assert toy.run(repo, "git", "status", "--porcelain") == before
    name = toy.run(repo, "git", "for-each-ref", "--format=%(refname)", "refs/exps/*/*/kept")
    assert "dropout: 0.3" in toy.run(repo, "git", "show", f"{name}:./params.yaml")
    if (larger := tmp_path / "larger" / "notes.txt").exists():
        assert toy.run(larger.parent, "git", "show", f"{name}:notes.txt") == "committed"


def test_a_submodule_has_no_copies(repo: Path, tmp_path: Path) -> None:
    """DVC would say that a file is outside of the repository."""
    larger = tmp_path / "larger"
    toy.run(tmp_path, "git", "init", "--quiet", "larger")
    toy.run(
        larger, "git", "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(repo), "sub"
    )
    with pytest.raises(ValueError, match=f"sub is a git submodule of {larger}.* git clone it elsewhere"):
        copy_of(larger / "sub", "one", "train.dropout=0.3")


HOOK = "echo A hook of the user has run >&2; exit 1"
SETTINGS = """
[commit]
    gpgsign = true
[gpg]
    program = false
[core]
    autocrlf = true
    quotepath = true
    pager = false
    hooksPath = {hooks}
[color]
    ui = always
[diff]
    noprefix = true
    external = false
[init]
    defaultBranch = trunk
[status]
    short = true
    showUntrackedFiles = no
[user]
    useConfigOnly = true
"""


def test_a_users_git_settings_and_hooks_do_not_matter(
    repo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Signatures, failing hooks, a missing name: all that is for commits that people make."""
    hooks = (
        "pre-commit",
        "prepare-commit-msg",
        "commit-msg",
        "post-checkout",
        "post-commit",
        "post-index-change",
    )
    for name in hooks:
        toy.write_program(tmp_path / "hooks" / name, HOOK)
    (tmp_path / "gitconfig").write_text(SETTINGS.format(hooks=tmp_path / "hooks"))
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(tmp_path / "gitconfig"))
    (repo / "notes.txt").write_text("new")
    content = (repo / "toy.py").read_bytes()
    copy = copy_of(repo, "one", "train.dropout=0.3")
    assert (copy / "toy.py").read_bytes() == content
    with light_dvc():
        toy.dvc(copy, "repro")
    experiment.keep_experiment(repo, copy, "kept")
    assert toy.dvc(repo, "exp", "list", "--name-only") == "kept"
