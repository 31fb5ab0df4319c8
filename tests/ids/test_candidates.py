"""Alignment candidates of source tokens, counted from links."""

import io
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from convs2s.ids.candidates import (
    NO_CANDIDATES,
    Candidates,
    has_candidates,
    read_candidates,
    write_candidates,
)
from convs2s.ids.encoded import FlatIds
from convs2s.ids.vocabulary import EOS
from convs2s.text.alignment import link_counting, word_ids
from convs2s.text.alignment.link_counting import build_candidates
from convs2s.text.alignment.word_ids import Corpus, copy_ids
from tests.text.alignment.corpora import pack


@pytest.fixture
def corpus(tmp_path: Path) -> Corpus:
    """Return four encoded pairs."""
    return copy_ids(encode([3, 5], [3, 3], [], [5]), encode([9, 7], [9, 8], [4], [6]), tmp_path)


def encode(*sentences: list[int]) -> FlatIds:
    """Return sentences in memory, each followed by EOS."""
    rows = [[*sentence, EOS] for sentence in sentences]
    return FlatIds(np.array([i for row in rows for i in row], np.uint16), np.cumsum([0, *map(len, rows)]))


LINKS = [[(0, 0), (1, 1)], [(0, 0), (0, 1), (1, 0)], [], [(0, 0)]]
# Token 3 is linked with 9 three times, with 8 once; token 5 with 6 and 7 once each.


@pytest.mark.parametrize("held", [1, 1 << 22])
def test_candidates_are_ordered_by_frequency_then_by_id(
    corpus: Corpus, held: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By hand; the number of links that are counted at once must make no difference."""
    monkeypatch.setattr(link_counting, "HELD_LINKS", held)
    monkeypatch.setattr(word_ids, "BLOCK", 1)
    found = build_candidates(corpus, pack(LINKS), 10)
    assert found.offsets.tolist() == [0, 0, 0, 0, 2, 2, 4]
    assert found.targets.tolist() == [9, 8, 6, 7]
    kept = build_candidates(corpus, pack(LINKS), 1)
    assert (kept.offsets.tolist(), kept.targets.tolist()) == ([0, 0, 0, 0, 1, 1, 2], [9, 6])


def test_candidates_of_several_tokens_are_concatenated(corpus: Corpus) -> None:
    """A token without candidates, or one that the alignment does not have, adds none."""
    found = build_candidates(corpus, pack(LINKS), 10)
    assert found.of(np.array([5, 4, 3, 999])).tolist() == [6, 7, 9, 8]
    assert NO_CANDIDATES.of(np.array([0, 5])).tolist() == []
    none = build_candidates(corpus, pack([[], [], [], []]), 10)
    assert (none.offsets.tolist(), none.targets.tolist()) == ([0], [])


def test_candidates_come_back_as_written(corpus: Corpus, tmp_path: Path) -> None:
    """Training and decoding must select the same tokens."""
    candidates = build_candidates(corpus, pack(LINKS), 10)
    write_candidates(tmp_path / "a", candidates)
    read = read_candidates(tmp_path / "a")
    assert read.offsets.tolist() == candidates.offsets.tolist()
    assert read.targets.tolist() == candidates.targets.tolist()
    assert has_candidates(tmp_path / "a")


def test_equal_candidates_give_equal_bytes(corpus: Corpus, tmp_path: Path) -> None:
    """DVC hashes the file, so its bytes must depend on the content alone."""
    candidates = build_candidates(corpus, pack(LINKS), 10)
    for name in ("a", "b"):
        write_candidates(tmp_path / name, candidates)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_a_truncated_file_says_what_to_do(tmp_path: Path) -> None:
    """The stage makes it again; a shorter list of candidates would go unnoticed."""
    path = tmp_path / "candidates.npz"
    write_candidates(path, Candidates(np.array([0, 1]), np.array([3], np.int32)))
    path.write_bytes(path.read_bytes()[:-30])
    with pytest.raises(ValueError, match=r"is damaged or not a file of candidates.*repro -f candidates"):
        read_candidates(path)


def test_an_empty_file_has_no_candidates(tmp_path: Path) -> None:
    """A pipeline without selection writes one, which a model folder then leaves out."""
    write_candidates(tmp_path / "candidates.npz", NO_CANDIDATES)
    assert not has_candidates(tmp_path / "candidates.npz")


def header(dtype: str, entries: int) -> bytes:
    """Return the beginning of an .npy file that claims so many entries."""
    stream = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        stream, {"descr": dtype, "fortran_order": False, "shape": (entries,)}
    )
    return stream.getvalue()


def pack_arrays(compression: int = zipfile.ZIP_STORED, **arrays: Any) -> bytes:
    """Return an .npz file of these arrays, or of the bytes of their files."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", compression) as archive:
        for name, array in arrays.items():
            file = io.BytesIO()
            if isinstance(array, bytes):
                file.write(array)
            else:
                np.save(file, array)
            archive.writestr(f"{name}.npy", file.getvalue())
    return stream.getvalue()


GOOD: dict[str, Any] = {"offsets": np.array([0, 0, 2]), "targets": np.array([3, 4], np.int32)}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (pack_arrays(**GOOD | {"offsets": np.array([None, 1])}), "a list of int64 .*, found object"),
        (pack_arrays(**GOOD | {"offsets": np.array([0.0, 2.0])}), "a list of int64 .*, found float64"),
        (pack_arrays(**GOOD | {"targets": np.array([[3, 4]], np.int32)}), r"a list of int32 .*, \(1, 2\)"),
        (pack_arrays(**GOOD | {"targets": header("<i4", 10**12) + bytes(8)}), "that fills its place"),
        (pack_arrays(zipfile.ZIP_DEFLATED, **GOOD), "expected offsets.npy uncompressed"),
        (pack_arrays(**GOOD, more=np.zeros(1)), "the arrays offsets and targets, and nothing else"),
        (pack_arrays(offsets=GOOD["offsets"]), "the arrays offsets and targets, and nothing else"),
        (b"PK", "is damaged or not a file of candidates"),
        (
            pack_arrays(**GOOD | {"offsets": np.array([0, 2, 1, 2])}),
            r"from 0 to the 2 targets, found \[0 2 1 2\]",
        ),
        (pack_arrays(**GOOD | {"offsets": np.zeros(0, np.int64)}), r"from 0 to the 2 targets, found \[\]"),
        (pack_arrays(**GOOD | {"targets": np.array([3, 5], np.int32)}), "entries from 0 to 4, found 3 to 5"),
        (
            pack_arrays(**GOOD | {"targets": np.array([-1, 4], np.int32)}),
            "entries from 0 to 4, found -1 to 4",
        ),
    ],
)
def test_another_file_is_refused(tmp_path: Path, content: bytes, message: str) -> None:
    """The error names the file; numpy's own message would advise the user to allow `pickle`."""
    path = tmp_path / "candidates.npz"
    path.write_bytes(pack_arrays(**GOOD))
    assert read_candidates(path, 5).of(np.array([1])).tolist() == [3, 4]
    path.write_bytes(content)
    with pytest.raises(ValueError, match=rf"candidates\.npz.*{message}") as raised:
        read_candidates(path, 5)
    assert "pickle" not in str(raised.value)


class Trap:
    """Creates a file in the current folder when it is unpickled."""

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return Path.touch, ("trap",)


@pytest.mark.parametrize("read", [lambda path: read_candidates(path, 5), has_candidates])
def test_no_object_is_unpickled(
    read: Callable[[Path], object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Someone else's model folder must not run code; numpy's arrays may hold pickles."""
    monkeypatch.chdir(tmp_path)
    objects = np.array([Trap()], dtype=object)
    np.savez("candidates.npz", offsets=objects, targets=objects)
    with pytest.raises(ValueError):  # numpy's, or ours
        read(tmp_path / "candidates.npz")
    assert not Path("trap").exists()
