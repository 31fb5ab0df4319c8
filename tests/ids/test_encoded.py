"""Arrays of token ids on disk."""

from pathlib import Path

import numpy as np
import pytest

from convs2s.ids.encoded import EncodedCorpus, EncodedSentences, Ids, id_type, write_encoded
from convs2s.ids.vocabulary import EOS

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
    """This must hold across chunk boundaries, too. Other tools can read the flat ids and offsets."""
    corpus = EncodedCorpus.open(folder, side)
    assert np.load(folder / f"{side}.ids.npy").tolist() == [id_ for row in rows for id_ in row]
    assert np.load(folder / f"{side}.offsets.npy").tolist() == corpus.offsets.tolist()
    assert len(corpus) == 3
    assert [corpus[i].tolist() for i in range(3)] == rows
    assert corpus.lengths.tolist() == [len(row) for row in rows]


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


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("source.offsets", np.array([0, 3, 4]), r"expected source\.offsets\.npy to rise from 0 to the 6 ids"),
        ("source.offsets", np.array([0, 4, 3, 6]), r"to the 6 ids .* found \[0 4 3 6\]"),
        (
            "target.offsets",
            np.array([0, 2, 7]),
            r"as many .* found \[0 3 4 6\] and \[0 2 7\].*repro -f encode",
        ),
        ("source.ids", np.zeros((2, 3)), r"source\.ids\.npy: expected .*float64 of shape \(2, 3\)"),
        ("source.ids", np.array([None]), r"source\.ids\.npy: expected .*list of integers"),
    ],
)
def test_files_that_do_not_belong_together_are_an_error(
    folder: Path, name: str, content: Ids, message: str
) -> None:
    """Files of different runs would put sentence starts anywhere."""
    np.save(folder / f"{name}.npy", content)
    with pytest.raises(ValueError, match=message) as raised:
        EncodedCorpus.open(folder, "source")
    assert "pickle" not in str(raised.value)  # numpy's advice for objects


def test_a_failed_write_keeps_the_old(folder: Path) -> None:
    """An incomplete file must not replace the old version."""
    with pytest.raises(TypeError, match="not iterable"):
        write_encoded(folder, [[sentences(SOURCE[:1]), sentences(TARGET[:1])], None], (10, 10))  # type: ignore[list-item]
    assert len(EncodedCorpus.open(folder, "source")) == 3
    assert [path.name for path in folder.parent.iterdir()] == ["train"]


def test_what_is_no_array_is_named_without_advice_on_pickles(folder: Path) -> None:
    """numpy takes any other file for a pickle, and says how to load it all the same."""
    (folder / "source.ids.npy").write_bytes(b"text, but no array")
    with pytest.raises(ValueError, match=r"source\.ids\.npy: expected a whole \.npy file") as raised:
        EncodedCorpus.open(folder, "source")
    assert "pickle" not in str(raised.value)
