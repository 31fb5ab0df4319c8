"""Folders from which code is loaded are used only if nobody else can change what is there."""

import os
import re
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path

import pytest

from convs2s.base import code_folders
from convs2s.base.code_folders import chosen_folder, describe_risk, is_private, protect_torch_compile

STRANGER = 54321


def give_away(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Give a file or folder to another user; whoever is not root becomes another user instead."""
    if os.geteuid() == 0:
        os.chown(path, STRANGER, -1, follow_symlinks=False)
    else:
        monkeypatch.setattr(os, "geteuid", lambda: STRANGER)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder within another, which only this user can change."""
    folder = tmp_path / "parent" / "folder"
    folder.mkdir(parents=True)
    for path in (folder, folder.parent):
        path.chmod(0o755)
    return folder


def link_to_open_folder(folder: Path) -> None:
    folder.rmdir()
    (folder.parent / "open").mkdir()
    (folder.parent / "open").chmod(0o1777)
    folder.symlink_to("open")


def link_through_open_folder(folder: Path) -> None:
    """Whoever can replace the target's parent can replace the target."""
    folder.rmdir()
    (folder.parent / "open" / "own").mkdir(parents=True)
    (folder.parent / "open").chmod(0o777)
    folder.symlink_to("../parent/open/own")


@pytest.mark.parametrize(
    ("change", "risk"),
    [
        (lambda folder: folder.chmod(0o700), None),
        (lambda folder: folder.chmod(0o1777), r"others may write to .*/folder \(its mode is 1777\)"),
        (lambda folder: folder.chmod(0o777), "others may write to .*/folder"),
        (lambda folder: folder.chmod(0o775), "others may write to .*/folder"),
        (lambda folder: folder.parent.chmod(0o777), "others may write to .*/parent "),
        (lambda folder: folder.parent.chmod(0o2775), "others may write to .*/parent "),
        (lambda folder: folder.parent.chmod(0o1777), None),
        (lambda folder: folder.rmdir(), None),
        (lambda folder: (folder.parent.chmod(0o777), folder.rmdir()), "others may write to .*/parent "),
        (link_to_open_folder, "others may write to .*/open "),
        (link_through_open_folder, "others may write to .*/open "),
    ],
)
def test_what_others_can_change_is_described(
    folder: Path, change: Callable[[Path], object], risk: str | None
) -> None:
    """Permission to write in a folder is permission to replace what is in it, unless it is sticky as /tmp."""
    change(folder)
    assert re.match(risk or "None$", str(describe_risk(folder)))


@pytest.mark.parametrize("kind", ["file", "folder", "link"])
def test_what_belongs_to_another_user_is_described(
    folder: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """Its owner can change it at any time; a link's owner can replace it even in /tmp."""
    path = folder / kind
    if kind == "file":
        path.touch(0o644)
    elif kind == "folder":
        path.mkdir()
    else:
        path.symlink_to(folder)
    assert is_private(path)
    give_away(path, monkeypatch)
    assert "belongs to another user" in str(describe_risk(path))


def test_a_circle_of_links_is_not_followed_for_ever(folder: Path) -> None:
    """A folder that cannot be examined is not used."""
    (folder / "a").symlink_to("b")
    (folder / "b").symlink_to("a")
    assert not is_private(folder / "a")


def test_a_chosen_folder_is_refused_with_one_message(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The user chose it and must learn why it is not used, but not once for every loop."""
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(folder))
    assert chosen_folder("NUMBA_CACHE_DIR") == folder
    folder.chmod(0o1777)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert [chosen_folder("NUMBA_CACHE_DIR") for _ in range(3)] == [None] * 3
    (warning,) = caught
    assert str(warning.message).startswith("NUMBA_CACHE_DIR is not used: expected a folder that only you can")
    assert f"others may write to {folder} (its mode is 1777)" in str(warning.message)


@pytest.fixture
def surroundings(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with `tmp`, which others may write as they may /tmp, and `cache`, the user's own."""
    for name in ("TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR"):
        monkeypatch.setenv(name, "")  # so that what the code sets is undone
        monkeypatch.delenv(name)
    (folder / "tmp").mkdir()
    (folder / "tmp").chmod(0o1777)
    monkeypatch.setattr(tempfile, "tempdir", str(folder / "tmp"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder / "cache"))
    code_folders.warn_once.cache_clear()
    return folder


def place_of_torch(folder: Path) -> str:
    """Return where torch.compile is to keep code, relative to a folder."""
    protect_torch_compile()
    place = Path(os.environ["TORCHINDUCTOR_CACHE_DIR"])
    assert is_private(place) and place.is_dir()
    return str(place.relative_to(folder))


def test_torch_compile_runs_no_code_of_others(
    surroundings: Path, monkeypatch: pytest.MonkeyPatch, recwarn: pytest.WarningsRecorder
) -> None:
    """It loads libraries and pickles from /tmp/torchinductor_NAME, which another user may have made first."""
    own = f"torchinductor_{os.geteuid()}"
    old = os.umask(0)
    try:
        assert place_of_torch(surroundings) == f"tmp/{own}"
    finally:
        os.umask(old)
    (surroundings / "tmp" / own).chmod(0o777)
    monkeypatch.delenv("TORCHINDUCTOR_CACHE_DIR")
    assert place_of_torch(surroundings) == f"cache/{own}"
    assert not recwarn.list
    shared = surroundings / "shared"
    shared.mkdir()
    shared.chmod(0o1777)
    for name in ("TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR"):
        monkeypatch.setenv(name, str(shared))
    assert place_of_torch(surroundings) == f"cache/{own}"
    assert "TRITON_CACHE_DIR" not in os.environ  # it is then a folder within the other
    assert [str(one.message).split()[0] for one in recwarn] == ["TRITON_CACHE_DIR", "TORCHINDUCTOR_CACHE_DIR"]
    shared.chmod(0o755)
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(shared))
    assert place_of_torch(surroundings) == "shared"


def test_a_file_of_another_user_in_torchs_folder_is_not_run(
    surroundings: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may be left from a time at which others could write there."""
    folder = Path(place_of_torch(surroundings))
    planted = surroundings / folder / "a" / "planted.py"
    planted.parent.mkdir()
    planted.touch()
    if os.geteuid() == 0:
        os.chown(planted, STRANGER, -1)
    else:
        monkeypatch.setattr(code_folders, "is_own", lambda path: path != planted)
    monkeypatch.delenv("TORCHINDUCTOR_CACHE_DIR")
    assert place_of_torch(surroundings) == f"cache/{folder.name}"


def test_without_a_private_place_torch_compile_is_refused(surroundings: Path) -> None:
    """It cannot work without a folder, and any other would be a risk."""
    (surroundings / "cache").touch()
    (surroundings / "tmp" / f"torchinductor_{os.geteuid()}").touch()
    with pytest.raises(PermissionError, match="Set TORCHINDUCTOR_CACHE_DIR to one, made with mkdir -m 700"):
        protect_torch_compile()
