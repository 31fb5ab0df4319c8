"""Stage encode."""

from pathlib import Path

import pytest

from convs2s.config.vocabulary import VocabularyParams
from convs2s.text.corpus.files import write_folder
from convs2s.text.vocabulary.codec import Codec
from convs2s.text.vocabulary.encoded import EncodedCorpus
from pipelines.stages import encode, vocabulary

ROOT = Path(__file__).parents[2]
PATHS = {"vocabulary": "vocabulary", "pairs": "train", "out": "out"}
PAIRS = [("low lower newest", "Bahn Straße"), ("", "Straße"), ("newest ☃", "")] * 20


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_folder(tmp_path / "train", PAIRS)
    params = VocabularyParams(kind="bpe", joint=True, source_size=30, target_size=30)
    vocabulary.run(params, tmp_path / "train", tmp_path / "vocabulary")
    return tmp_path


def test_sentences_decode_to_the_text(folder: Path) -> None:
    """Encoding is lossless for the text that the vocabulary was learned from."""
    encode.run(folder / "vocabulary", folder / "train", folder / "out")
    for number, side in enumerate(("source", "target")):
        corpus, codec = EncodedCorpus.open(folder / "out", side), Codec.load(folder / "vocabulary", side)
        found = [" ".join(codec.decode(corpus[i])) for i in range(len(corpus))]
        assert found == [pair[number] for pair in PAIRS]


def test_unequal_sides_leave_no_output(folder: Path) -> None:
    """The message gives both counts."""
    (folder / "train/target.txt").write_text("a\n")
    with pytest.raises(ValueError, match=r"source\.txt has 60 lines but .*target\.txt has 1\."):
        encode.run(folder / "vocabulary", folder / "train", folder / "out")
    assert not (folder / "out").exists()
