"""Arrays of token ids on disk."""

import errno
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from convs2s.text.corpus.flat_ids import ArrayWriter
from convs2s.text.vocabulary.encoded import EncodedCorpus, EncodedSentences, id_type, write_encoded
from convs2s.text.vocabulary.vocabulary import EOS

SOURCE = [[5, 6, EOS], [EOS], [7, EOS]]
TARGET = [[9, EOS], [8, 8, 8, EOS], [EOS]]


def sentences(rows: list[list[int]], vocabulary_size: int = 10) -> EncodedSentences:
    ids = np.array([id_ for row in rows for id_ in row], dtype=id_type(vocabulary_size))
    return EncodedSentences(ids, np.array([len(row) for row in rows], dtype=np.int64))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder of three pairs, written in chunks of two and one."""
    chunks = [[sentences(side[:2]), sentences(side[2:])] for side in (SOURCE, TARGET)]
    write_encoded(tmp_path / "train", [list(chunk) for chunk in zip(*chunks, strict=True)], (10, 10))
    return tmp_path / "train"


@pytest.mark.parametrize(("side", "rows"), [("source", SOURCE), ("target", TARGET)])
def test_sentences_come_back_as_written(folder: Path, side: str, rows: list[list[int]]) -> None:
    """This must hold across chunk boundaries, too."""
    corpus = EncodedCorpus.open(folder, side)
    assert len(corpus) == 3
    assert [corpus[i].tolist() for i in range(3)] == rows
    assert corpus.lengths.tolist() == [len(row) for row in rows]


def test_files_can_be_read_by_numpy(folder: Path) -> None:
    """Other tools can read the flat ids and offsets, although the length is written last."""
    assert sorted(path.name for path in folder.iterdir()) == [
        "source.ids.npy", "source.offsets.npy", "target.ids.npy", "target.offsets.npy",
    ]  # fmt: skip
    ids, offsets = np.load(folder / "source.ids.npy"), np.load(folder / "source.offsets.npy")
    assert (ids.dtype, offsets.dtype) == (np.uint16, np.int64)
    assert ids.tolist() == [5, 6, EOS, EOS, 7, EOS]
    assert offsets.tolist() == [0, 3, 4, 6]


def test_ids_are_memory_mapped(folder: Path) -> None:
    """A corpus may be larger than memory."""
    assert isinstance(EncodedCorpus.open(folder, "source").ids, np.memmap)


@pytest.mark.parametrize(("size", "wanted"), [(65_535, np.uint16), (65_536, np.int32), (200_000, np.int32)])
def test_large_vocabularies_take_larger_ids(tmp_path: Path, size: int, wanted: type) -> None:
    """The largest id must fit; an overflow would give another word."""
    write_encoded(tmp_path / "x", [[sentences([[size - 1, EOS]], size)] * 2], (size, size))
    corpus = EncodedCorpus.open(tmp_path / "x", "source")
    assert corpus.ids.dtype == wanted
    assert corpus[0].tolist() == [size - 1, EOS]


def test_a_corpus_without_sentences_can_be_read(tmp_path: Path) -> None:
    """numpy cannot map an empty array, but a corpus without sentences is not damaged."""
    write_encoded(tmp_path / "x", [], (10, 10))
    assert len(EncodedCorpus.open(tmp_path / "x", "source")) == 0


@pytest.mark.parametrize("i", [-1, 3])
def test_a_sentence_out_of_range_is_an_error(folder: Path, i: int) -> None:
    """ids[offsets[-1]:offsets[0]] would silently be empty."""
    with pytest.raises(IndexError, match=rf"expected a sentence from 0 to 2, found {i}"):
        EncodedCorpus.open(folder, "source")[i]


@pytest.mark.parametrize("name", ["source.ids.npy", "source.offsets.npy"])
@pytest.mark.parametrize("keep", [0, 7, 100, -1])
def test_a_truncated_file_is_named(folder: Path, name: str, keep: int) -> None:
    """Training must not use the part that is left of a truncated copy."""
    content = (folder / name).read_bytes()
    (folder / name).write_bytes(content[:keep])
    with pytest.raises(ValueError, match=rf"{name} is truncated or not a \.npy file.*dvc repro -f encode"):
        EncodedCorpus.open(folder, "source")


@pytest.mark.parametrize(
    ("offsets", "found"),
    [
        ([0, 3, 4], "from 0 to 4"),
        ([1, 3, 4, 6], "from 1 to 6"),
        ([0, 4, 3, 6], "from 0 to 6"),
        ([0, 3, 3, 6], "from 0 to 6"),
        ([], "is empty"),
    ],
)
def test_offsets_that_do_not_fit_the_ids_are_an_error(folder: Path, offsets: list[int], found: str) -> None:
    """Files of different runs would put sentence starts anywhere; every sentence has at least EOS."""
    np.save(folder / "source.offsets.npy", np.array(offsets, dtype=np.int64))
    with pytest.raises(ValueError, match=rf"source\.ids\.npy has 6 ids but .* {found}\..*rise from 0"):
        EncodedCorpus.open(folder, "source")


@pytest.mark.parametrize(
    ("place", "value", "found"),
    [
        (0, 10, "range from 1 to 10, with 3 EOS for 3 sentences"),  # beyond the vocabulary
        (1, 0, "range from 0 to 7, with 3 EOS"),  # PAD
        (1, EOS, "range from 1 to 7, with 4 EOS for 3 sentences"),  # a sentence inside another
        (5, 7, "range from 1 to 7, with 2 EOS for 3 sentences"),  # the last sentence has no end
        (2, 5, "with 2 EOS"),
    ],
)
@pytest.mark.parametrize("chunk", [4, 100])
def test_impossible_ids_are_found_when_opened_for_training(
    folder: Path, monkeypatch: pytest.MonkeyPatch, place: int, value: int, found: str, chunk: int
) -> None:
    """An id beyond the embedding table would stop training, or read another row's memory."""
    monkeypatch.setattr("convs2s.text.vocabulary.encoded.CHECKED_IDS", chunk)
    EncodedCorpus.open(folder, "source", 10)
    ids = np.load(folder / "source.ids.npy")
    ids[place] = value
    np.save(folder / "source.ids.npy", ids)
    found = found if chunk == 100 else r"ids at positions \d to \d range from"
    with pytest.raises(ValueError, match=rf"source\.ids\.npy: .*{found}.*Expected 1 to 9.*repro -f encode"):
        EncodedCorpus.open(folder, "source", 10)


def test_unequal_sides_are_an_error(folder: Path) -> None:
    """Every sentence must have a translation."""
    np.save(folder / "target.offsets.npy", np.array([0, 2, 7]))
    np.save(folder / "target.ids.npy", np.arange(7))
    with pytest.raises(ValueError, match=r"source has 3 sentences but target has 2\..*translate sentence i"):
        EncodedCorpus.open(folder, "source")


def test_an_array_of_something_else_is_an_error(folder: Path) -> None:
    """Floats or tables were not written by this program."""
    np.save(folder / "source.ids.npy", np.zeros((2, 3)))
    with pytest.raises(
        ValueError, match=r"source\.ids\.npy: expected a list of integers, found float64 of shape \(2, 3\)"
    ):
        EncodedCorpus.open(folder, "source")


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    """The message names the stage to run."""
    with pytest.raises(FileNotFoundError, match=r"source\.ids\.npy does not exist.*dvc repro encode"):
        EncodedCorpus.open(tmp_path, "source")


def test_a_full_disk_leaves_nothing_and_keeps_the_old(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An incomplete file must not replace the old version."""

    def full(self: ArrayWriter, values: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(ArrayWriter, "append", full)
    with pytest.raises(OSError, match=r"No space left on device.*half-written.*train"):
        write_encoded(folder, [[sentences(SOURCE), sentences(TARGET)]], (10, 10))
    assert [path.name for path in folder.parent.iterdir()] == ["train"]
    assert len(EncodedCorpus.open(folder, "source")) == 3


def test_an_error_in_the_stream_leaves_nothing(tmp_path: Path) -> None:
    """Sentences are encoded while they are written, so an error must not leave a folder."""

    def broken() -> Iterator[list[EncodedSentences]]:
        yield [sentences(SOURCE), sentences(TARGET)]
        raise ValueError("line 4 is bad")

    with pytest.raises(ValueError, match="line 4 is bad"):
        write_encoded(tmp_path / "train", broken(), (10, 10))
    assert list(tmp_path.iterdir()) == []
