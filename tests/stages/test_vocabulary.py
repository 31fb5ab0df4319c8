"""Stage vocabulary."""

import json
from pathlib import Path

import pytest

from convs2s.config.vocabulary import VocabularyParams
from convs2s.text.corpus.files import write_folder
from pipelines.stages import vocabulary

PAIRS = [("low lower newest", "Bahn Straße"), ("low", "Straße"), ("newest newest", "Bahn Bahn")]


def params(**changes: object) -> VocabularyParams:
    values = {"kind": "bpe", "joint": True, "source_size": 30, "target_size": 30}
    return VocabularyParams.model_validate(values | changes)


@pytest.fixture
def train(tmp_path: Path) -> Path:
    write_folder(tmp_path / "train", PAIRS)
    return tmp_path / "train"


def test_word_vocabularies_hold_the_most_frequent_words(train: Path, tmp_path: Path) -> None:
    """Counted by hand: newest 3, low 2, lower 1; Bahn 3, Straße 2."""
    sizes = {"joint": False, "source_size": 2, "target_size": 2}
    vocabulary.run(params(kind="word", **sizes), train, tmp_path / "out")
    assert (tmp_path / "out/source.tsv").read_text() == "newest\t3\nlow\t2\n"
    assert (tmp_path / "out/target.tsv").read_text(encoding="utf-8") == "Bahn\t3\nStraße\t2\n"
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        "segmentation.json", "source.tsv", "target.tsv",
    ]  # fmt: skip


def test_segmentation_is_recorded(train: Path, tmp_path: Path) -> None:
    """The folder records the segmentation and the number of entries of each side."""
    vocabulary.run(params(), train, tmp_path / "out")
    sizes = {
        side: (tmp_path / f"out/{side}.tsv").read_text(encoding="utf-8").count("\n")
        for side in ("source", "target")
    }
    assert json.loads((tmp_path / "out/segmentation.json").read_text()) == {
        "kind": "bpe",
        "joint": True,
        "source_size": 30,
        "target_size": 30,
        "source_types": sizes["source"],
        "target_types": sizes["target"],
    }


def test_a_joint_model_is_that_of_both_sides(train: Path, tmp_path: Path) -> None:
    """Each side has a copy, so that it can be read alone; separate models differ."""
    vocabulary.run(params(), train, tmp_path / "joint")
    vocabulary.run(params(joint=False, source_size=12, target_size=12), train, tmp_path / "separate")
    joint, separate = (
        {(tmp_path / kind / f"{side}.model").read_bytes() for side in ("source", "target")}
        for kind in ("joint", "separate")
    )
    assert (len(joint), len(separate)) == (1, 2)


@pytest.mark.parametrize("kind", ["bpe", "word"])
def test_a_vocabulary_larger_than_the_data_allows_is_an_error(train: Path, tmp_path: Path, kind: str) -> None:
    """The message names the parameter and the largest size; nothing is left behind."""
    too_many = params(kind=kind, joint=kind == "bpe", source_size=4000, target_size=4000)
    with pytest.raises(ValueError, match=r"vocabulary\.source_size is 4,000 but .*at most \d+: lower"):
        vocabulary.run(too_many, train, tmp_path / "out")
    assert [path.name for path in tmp_path.iterdir()] == ["train"]
