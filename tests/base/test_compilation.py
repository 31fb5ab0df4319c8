"""The cache of compiled loops: whatever state its files are in, and whoever may write them, loops run."""

import hashlib
import importlib.util
import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest import mock

import numba
import pytest

from convs2s.base.code_folders import warn_once
from tests.train.tiny import ROOT

SOURCE = """
import os, signal
from numba import extending, types
from convs2s.base.compilation import compiled

generated = []

@compiled()
def double(x):
    return x + x

@extending.intrinsic
def interrupt(context, x):
    def generate(_, builder, signature, arguments):
        if not generated:
            os.kill(os.getpid(), signal.SIGINT)
        generated.append(True)
        return arguments[0]
    return types.int64(x), generate

@compiled()
def interrupted(x):
    return interrupt(x)
"""
STRANGER = 54321  # a user's id
SIZE = 1000  # the compiled loop has more bytes
DAMAGE: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda _: b"",
    "cut": lambda content: content[:-SIZE],
    "cut in the digest": lambda content: content[:7],
    "zeros, as after a power cut": lambda content: bytes(len(content)),
    "zeros at the end": lambda content: content[:-SIZE] + bytes(SIZE),
    "one bit": lambda content: content[:SIZE] + bytes([content[SIZE] ^ 1]) + content[SIZE + 1 :],
    "garbage": lambda _: b"garbage" * 999,
}


def load(path: Path) -> Any:
    """Return the loops of a file, with nothing compiled in this process."""
    spec = importlib.util.spec_from_file_location("loops_of_a_test", path)
    assert spec and spec.loader
    module = sys.modules["loops_of_a_test"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def hits(path: Path) -> int:
    """Use a loop, which must be right; return how often its code came from the cache."""
    double = load(path).double
    assert double(21) == 42
    return int(double.stats.cache_hits.total())


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "code" / "loops.py"
    path.parent.mkdir()
    path.write_text(SOURCE)
    return path


@pytest.mark.parametrize("name", DAMAGE)
def test_a_damaged_file_is_compiled_and_written_again(name: str, source: Path) -> None:
    """Numba's own cache raises EOFError or UnpicklingError at every start, or runs what is left."""
    assert hits(source) == 0
    (file,) = source.parent.rglob("*.nbc")
    file.write_bytes(DAMAGE[name](file.read_bytes()))
    assert (hits(source), hits(source)) == (0, 1)


class Trap:
    """Makes a folder when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return os.mkdir, (str(self.path),)


def give_away(path: Path) -> None:
    """Give a file or folder to another user, as only root can; its mode stays."""
    if os.geteuid() != 0:
        pytest.skip("only root can give a file to another user; tests/base/test_code_folders.py plays this")
    os.chown(path, STRANGER, -1)


def replace_by_link(file: Path) -> None:
    """Move a file to a folder that others may write, and leave a link."""
    opened = file.parents[2] / "open"
    opened.mkdir()
    opened.chmod(0o777)
    file.symlink_to(file.replace(opened / file.name))


RISKS: dict[str, Callable[[Path], Any]] = {
    "the file": lambda file: file.chmod(0o666),
    "the file, for a group": lambda file: file.chmod(0o664),
    "the folder": lambda file: file.parent.chmod(0o1777),
    "the folder, for a group": lambda file: file.parent.chmod(0o775),
    "the chosen folder": lambda file: file.parents[1].chmod(0o1777),
    "the folder above": lambda file: file.parents[2].chmod(0o777),
    "the target of a link": replace_by_link,
    "a file of another owner": give_away,
    "a folder of another owner": lambda file: give_away(file.parent),
}
"""What others may write, given a file of the cache."""
ABOVE = ("the chosen folder", "the folder above")  # __pycache__: there, they could replace the source


@pytest.mark.parametrize(
    ("where", "risk"),
    [
        *(("NUMBA_CACHE_DIR", risk) for risk in (None, *RISKS)),
        *(("XDG_CACHE_HOME", risk) for risk in (None, *RISKS) if risk != "the chosen folder"),  # has no code
        *(("__pycache__", risk) for risk in (None, *RISKS) if risk not in ABOVE),
    ],
)
def test_what_others_can_write_is_not_unpickled(
    where: str, risk: str | None, source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever could write such a file ran code as this user. The loop is compiled, and kept elsewhere."""
    warn_once.cache_clear()
    for name in ("NUMBA_CACHE_DIR", "XDG_CACHE_HOME"):
        monkeypatch.setenv(name, "")
    if where != "__pycache__":
        (source.parent / "__pycache__").touch()  # not a folder: nothing can be kept there
        place = source.parents[1] / "parent" / "place"
        place.mkdir(parents=True)
        monkeypatch.setenv(where, str(place))
    assert hits(source) == 0
    (file,) = source.parents[1].rglob("*.nbc")
    trap = source.parent / "trap"
    payload = pickle.dumps(Trap(trap))
    file.write_bytes(hashlib.sha256(payload).digest() + payload)
    if risk is None:  # it would run
        with pytest.raises(TypeError):
            hits(source)
        assert trap.is_dir()
        return
    RISKS[risk](file)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert hits(source) == 0
    assert not trap.exists()
    is_chosen = where == "NUMBA_CACHE_DIR" and risk in ABOVE
    assert [str(one.message).split()[0] for one in caught if "cannot be kept" not in str(one.message)] == (
        ["NUMBA_CACHE_DIR"] if is_chosen else []
    )


def test_types_have_files_of_their_own(source: Path) -> None:
    """With an index, two processes that begin at once take the same name for two types: a TypeError."""
    double = load(source).double
    assert (double(1), double(0.5)) == (2, 1.0)
    assert len([*source.parent.rglob("*.nbc")]) == 2


def test_an_edit_of_an_inlined_file_is_noticed(source: Path) -> None:
    """A function that a loop inlines is part of the loop's machine code."""
    inlined = source.with_name("inlined.py")
    for number in (1, 22):  # of two edits of one length within a second, Python itself would miss one
        inlined.write_text(f"NUMBER = {number}\n")
        imports = "from convs2s.base.compilation import compiled\nfrom inlined import NUMBER\n"
        loop = f"@compiled({str(inlined)!r})\ndef number():\n    return NUMBER\n"
        source.write_text(f"{imports}{loop}print(number())\n")
        env = {**os.environ, "PYTHONPATH": str(ROOT)}
        done = subprocess.run([sys.executable, source], env=env, capture_output=True, text=True, check=True)
        assert done.stdout == f"{number}\n"


def test_a_signal_waits_for_the_end_of_a_compilation(source: Path, request: pytest.FixtureRequest) -> None:
    """In a callback of LLVM its exception would be lost: SIGTERM without effect, then a RuntimeError."""
    module = load(source)
    before = signal.default_int_handler
    inherited = signal.signal(signal.SIGINT, before)  # a background job of a shell ignores it
    request.addfinalizer(lambda: signal.signal(signal.SIGINT, inherited))
    with pytest.raises(KeyboardInterrupt):
        module.interrupted(1)
    assert module.generated  # the signal came before that
    assert signal.getsignal(signal.SIGINT) is before
    assert module.interrupted(1) == 1


@pytest.fixture
def installed() -> Iterator[Path]:
    """A source in a folder that all users can read, as pytest's own are not."""
    with TemporaryDirectory() as temporary:
        Path(temporary).chmod(0o755)
        path = Path(temporary, "code", "loops.py")
        path.parent.mkdir()
        path.write_text(SOURCE)
        yield path


def use_as_stranger(path: Path, environment: dict[str, str]) -> tuple[int, list[str], bool]:
    """Use a loop as a user without a name or home; return hits, warnings, and whether `~` is a folder."""
    if os.geteuid() == 0:
        os.setgroups([])
        os.setgid(STRANGER)
        os.setuid(STRANGER)
    for name in ("HOME", "XDG_CACHE_HOME", "NUMBA_CACHE_DIR"):
        os.environ.pop(name, None)
    os.environ.update({name: value for name, value in environment.items() if value})
    numba.config.reload_config()  # type: ignore[no-untyped-call]
    os.chdir(path.parents[1])
    nameless = mock.patch("pwd.getpwuid", side_effect=KeyError)
    with nameless, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        return hits(path), [str(warning.message) for warning in caught], Path("~").exists()


def as_stranger(path: Path, **environment: str) -> tuple[int, list[str], bool]:
    """Do so in a process of its own."""
    folders = [path.parent, *(folder for folder in path.parent.rglob("*") if folder.is_dir())]
    for folder in folders:
        folder.chmod(0o555)
    try:
        with ProcessPoolExecutor(1, multiprocessing.get_context("fork")) as pool:
            return pool.submit(use_as_stranger, path, {"HOME": "/nowhere", **environment}).result()
    finally:
        for folder in folders:
            folder.chmod(0o755)


def test_another_user_uses_what_is_compiled(installed: Path) -> None:
    """Numba's own cache needs a folder that this user can write even to read: "no locator available"."""
    assert hits(installed) == 0
    assert as_stranger(installed) == (1, [], False)


def test_without_any_place_to_write_loops_are_compiled_each_time(installed: Path) -> None:
    """A service without a home may use an installation that its user cannot write; it still works."""
    for _ in range(2):
        found, (warning,), _ = as_stranger(installed)
        assert found == 0
        assert "NUMBA_CACHE_DIR" in warning


def test_a_user_without_a_home_gets_no_folder_of_that_name(installed: Path) -> None:
    """Numba writes to a folder `~` of the working directory."""
    installed.parents[1].chmod(0o777)
    assert as_stranger(installed, HOME="")[2] is False


@pytest.mark.parametrize("name", ["NUMBA_CACHE_DIR", "XDG_CACHE_HOME", "HOME"])
def test_compiled_loops_go_where_one_can_write(name: str, installed: Path) -> None:
    """The source's own folder comes before the user's."""
    place = installed.parents[1] / "place"
    place.mkdir()
    if os.geteuid() == 0:
        os.chown(place, STRANGER, -1)
    for expected in (0, 1):
        assert as_stranger(installed, **{name: str(place)}) == (expected, [], False)
    assert [*place.rglob("*.nbc")]
