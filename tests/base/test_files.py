"""Text comes back as written, output appears complete or not at all, and leftovers are removed."""

import errno
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from dvc import fs
from dvc.repo import Repo

from convs2s.base import files
from convs2s.base.files import (
    PairWriter,
    atomic_path,
    read_folder,
    read_json,
    temporary_folder,
    write_folder,
    write_json,
    write_lines,
)
from convs2s.text.corpus.filter import write_splits
from convs2s.text.sources.pair_files import Part
from convs2s.text.sources.split import write_split

ROOT = Path(__file__).parents[2]


@pytest.fixture(params=["noticed", "unnoticed"])
def dead(request: pytest.FixtureRequest) -> Iterator[int]:
    """Return the id of a process that has ended; its parent may not have noticed yet."""
    with subprocess.Popen(["true"]) as process:
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        if request.param == "noticed":
            process.wait()
        yield process.pid


def test_leftovers_of_dead_processes_are_removed_and_nothing_else(tmp_path: Path, dead: int) -> None:
    """Those of live processes may be in use."""
    kept = {f".out.{os.getppid()}.part", f".out.{dead}.part.txt", f"out.{dead}.part", f".other.{dead}.part"}
    for name in (*kept, f".work.{dead}.part"):
        (tmp_path / name).write_text("a file")
    (tmp_path / f".out.{dead}.part").mkdir()
    (tmp_path / f".out.{dead}.part" / "large").write_text("removed")
    with atomic_path(tmp_path / "out") as temporary, temporary_folder(tmp_path) as folder:
        assert {path.name for path in tmp_path.iterdir()} == {*kept, folder.name}
        temporary.write_text("new")
    assert {path.name for path in tmp_path.iterdir()} == {*kept, "out"}


def test_a_folder_is_never_incomplete(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that is killed while it removes the old folder must leave the new one complete."""
    out = tmp_path / "out"
    for content in ("old", "new"):
        with monkeypatch.context() as patch, atomic_path(out) as temporary:
            temporary.mkdir()
            (temporary / "content").write_text(content)
            patch.setattr(files.shutil, "rmtree", lambda _: None)  # as if killed before this
        assert (out / "content").read_text() == content
    assert len(list(tmp_path.iterdir())) == 2  # the old one is yet to be removed
    with atomic_path(out) as temporary:
        temporary.mkdir()
    assert list(tmp_path.iterdir()) == [out]


def test_dvc_does_not_watch_unfinished_output(tmp_path: Path) -> None:
    """A leftover in a folder that a stage depends on would make the stage stale forever."""
    shutil.copy(ROOT / ".dvcignore", tmp_path)
    Repo.init(str(tmp_path), no_scm=True).close()
    with Repo(str(tmp_path)) as repo, atomic_path(tmp_path / "data" / "model") as temporary:
        temporary.write_text("half")
        assert repo.dvcignore.is_ignored_file(str(temporary))
        assert repo.dvcignore.is_ignored_file(str(tmp_path / "data" / fs.utils.tmp_fname()))  # DVC's own
        assert not repo.dvcignore.is_ignored_file(str(tmp_path / "data" / "model"))


def test_a_file_does_not_replace_a_folder(tmp_path: Path) -> None:
    """Otherwise a typo in the name of an output would delete a folder's whole content."""
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "text.txt").touch()
    with pytest.raises(IsADirectoryError), atomic_path(tmp_path / "data") as temporary:
        temporary.touch()
    assert [path.name for path in tmp_path.rglob("*")] == ["data", "text.txt"]


def test_pairs_come_back_as_written(tmp_path: Path) -> None:
    """Only a line feed ends a sentence: Unicode's other line ends are text."""
    pairs = [("a b", "ä"), ("", "x\u2028y\x0bz\x85"), ("🙂", "")]
    write_folder(tmp_path / "pairs", iter(pairs))
    assert list(read_folder(tmp_path / "pairs")) == pairs
    assert (tmp_path / "pairs/source.txt").read_bytes() == "a b\n\n🙂\n".encode()


def write_pair_with(line: str, folder: Path) -> None:
    write_folder(folder / "x", [("a", "b"), ("a", line)])


def write_part_with(line: str, folder: Path) -> None:
    write_split([Part("a", iter([("a", "b"), (line, "b")]), {})], folder / "x")


def write_splits_with(line: str, folder: Path) -> None:
    write_splits(folder, iter([("a", "b"), (line, "b")]), [], None)


def write_validation_with(line: str, folder: Path) -> None:
    write_splits(folder, iter([("a", "b")]), [("c", "d"), ("a", line)], None)


def write_lines_with(line: str, folder: Path) -> None:
    write_lines(folder / "x", ["a", line])


WRITERS = {
    "pairs": (write_pair_with, "target of a pair: "),
    "a part": (write_part_with, "source of a pair: "),
    "kept pairs": (write_splits_with, "source of a pair: "),
    "validation pairs": (write_validation_with, "target of a pair: "),
    "lines": (write_lines_with, "x, line 2: "),
}


@pytest.mark.parametrize("line", ["a\nb", "b\n", "\n", "b\r", "b\r\n"])
@pytest.mark.parametrize(("write", "place"), WRITERS.values(), ids=WRITERS)
def test_a_line_end_in_a_line_is_refused(
    write: Callable[[str, Path], None], place: str, line: str, tmp_path: Path
) -> None:
    """Otherwise, one side would have a line more, and all pairs below would be wrong; no count would tell."""
    with pytest.raises(ValueError, match=rf"{place}expected one line of text, found a line end in '.*report"):
        write(line, tmp_path)
    assert not (tmp_path / "x").exists()


def test_json_is_written_by_lines(tmp_path: Path) -> None:
    """Line ends in its strings are escaped."""
    write_json(tmp_path / "a.json", {"a": ["b\nc\r", "\u2028"]})
    assert read_json(tmp_path / "a.json") == {"a": ["b\nc\r", "\u2028"]}


def test_a_full_disk_leaves_nothing_and_keeps_the_old(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Later stages would take half a corpus under the final name for the whole corpus."""

    def full(self: PairWriter, source: str, target: str) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    write_folder(tmp_path / "pairs", [("old", "alt")])
    monkeypatch.setattr(PairWriter, "write", full)
    with pytest.raises(OSError, match=r"No space left on device.*half-written.*pairs"):
        write_folder(tmp_path / "pairs", [("new", "neu")])
    assert list(read_folder(tmp_path / "pairs")) == [("old", "alt")]
    assert [path.name for path in tmp_path.iterdir()] == ["pairs"]


@pytest.mark.parametrize("content", [b"{", b"\xff", b'{"a": ' + b"[" * 100_000, b"", b"1" * 10_000, b"[]"])
def test_a_file_that_is_no_json_object_is_named(content: bytes, tmp_path: Path) -> None:
    """A cut, deeply nested or foreign file gives one error with its name and what to do."""
    (tmp_path / "a.json").write_bytes(content)
    with pytest.raises(ValueError, match=r"a\.json(:| is not JSON:).*Make or fetch it again"):
        read_json(tmp_path / "a.json")
