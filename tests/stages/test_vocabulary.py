"""Stages vocabulary and encode."""

import json
from pathlib import Path

from convs2s.base.files import write_folder
from convs2s.config.section import NOTHING
from convs2s.config.text import VocabularyParams
from convs2s.ids.encoded import EncodedCorpus
from convs2s.text.vocabulary.codec import Codec
from pipelines.stages import encode, vocabulary

PAIRS = [("low lower newest", "Bahn Straße"), ("low", "Straße"), ("newest newest", "Bahn Bahn"), ("", "")]


def run(folder: Path, **changes: object) -> Path:
    """Run the stage vocabulary with these parameters; return its output."""
    write_folder(folder / "train", PAIRS)
    values = {"kind": "bpe", "joint": True, "source_size": 30, "target_size": 30} | changes
    vocabulary.run(VocabularyParams.model_validate(values), NOTHING, folder / "train", folder / "out")
    return folder / "out"


def test_word_vocabularies_hold_the_most_frequent_words(tmp_path: Path) -> None:
    """Counted by hand: newest 3, low 2, lower 1; Bahn 3, Straße 2."""
    out = run(tmp_path, kind="word", joint=False, source_size=2, target_size=2)
    assert (out / "source.tsv").read_text() == "newest\t3\nlow\t2\n"
    assert (out / "target.tsv").read_text(encoding="utf-8") == "Bahn\t3\nStraße\t2\n"
    assert sorted(path.name for path in out.iterdir()) == ["segmentation.json", "source.tsv", "target.tsv"]


def test_pieces_are_recorded_and_encode_the_text_without_loss(tmp_path: Path) -> None:
    """Each side has a copy of the joint model, so that it can be read alone."""
    out = run(tmp_path)
    recorded = json.loads((out / "segmentation.json").read_text())
    values = {"kind": "bpe", "joint": True, "source_size": 30, "target_size": 30}
    encode.run(out, tmp_path / "train", tmp_path / "encoded")
    for number, side in enumerate(("source", "target")):
        corpus = EncodedCorpus.open(tmp_path / "encoded", side)
        codec = Codec.load(out, side)
        assert [" ".join(codec.decode(corpus[i])) for i in range(len(corpus))] == [
            pair[number] for pair in PAIRS
        ]
        values[f"{side}_types"] = (out / f"{side}.tsv").read_text(encoding="utf-8").count("\n")
    assert recorded == values
    assert (out / "source.model").read_bytes() == (out / "target.model").read_bytes()
    out = run(tmp_path, joint=False, source_size=12, target_size=12)
    assert (out / "source.model").read_bytes() != (out / "target.model").read_bytes()


def test_a_training_that_starts_from_a_model_takes_its_vocabulary(tmp_path: Path) -> None:
    """Nothing is learned: the corpus is not even read."""
    start = run(tmp_path)
    values = {"kind": "bpe", "joint": True, "source_size": 9, "target_size": 9}
    nowhere = tmp_path / "nowhere"
    vocabulary.run(VocabularyParams.model_validate(values), str(start), nowhere, tmp_path / "copy")
    contents = [
        {path.name: path.read_bytes() for path in folder.iterdir()} for folder in (start, tmp_path / "copy")
    ]
    assert contents[0] == contents[1]
