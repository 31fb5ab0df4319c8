"""Stage encode."""

import subprocess
import sys
from pathlib import Path

import pytest

from convs2s.config.vocabulary import VocabularyParams
from convs2s.text.corpus.files import write_folder
from convs2s.text.vocabulary import encoding
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


def test_several_processes_write_the_same_bytes(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """DVC hashes the output: it must not depend on the number of cores."""
    monkeypatch.setattr(encoding, "CHUNK_PAIRS", 7)
    for cores in (1, 2):
        monkeypatch.setattr("convs2s.text.corpus.parallel.cores", lambda cores=cores: cores)
        encode.run(folder / "vocabulary", folder / "train", folder / f"out{cores}")
    for path in (folder / "out1").iterdir():
        assert path.read_bytes() == (folder / "out2" / path.name).read_bytes()


def test_it_runs_as_a_command(folder: Path) -> None:
    """dvc.yaml runs the module with paths, from the repository root."""
    command = [sys.executable, "-m", "pipelines.stages", "encode"]
    paths = [f"--{name}={folder / path}" for name, path in PATHS.items()]
    subprocess.run([*command, *paths], cwd=ROOT, check=True, capture_output=True)
    assert len(EncodedCorpus.open(folder / "out", "target")) == len(PAIRS)


def test_unequal_sides_leave_no_output(folder: Path) -> None:
    """The message gives both counts."""
    (folder / "train/target.txt").write_text("a\n")
    with pytest.raises(ValueError, match=r"source\.txt has 60 lines but .*target\.txt has 1\."):
        encode.run(folder / "vocabulary", folder / "train", folder / "out")
    assert not (folder / "out").exists()
