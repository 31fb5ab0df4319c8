"""Stage filter."""

import json
import shutil
from pathlib import Path

import pandas as pd
import pytest

from convs2s.config.filter import FilterParams
from convs2s.text.corpus.files import read_folder, write_folder
from pipelines.stages import filter as filter_stage

TRAIN = [("a b", "c d"), ("", "x"), ("e f", "g h"), ("one", "one two three"), ("a b", "c d"), ("i", "j")]


def params(**changes: object) -> FilterParams:
    values = {
        "max_words": 175, "max_ratio": 1.5, "ratio_of": "words", "drop_empty": True, "drop_repeats": False,
        "valid_every": 2,
    }  # fmt: skip
    return FilterParams.model_validate(values | changes)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_folder(tmp_path / "train", TRAIN)
    write_folder(tmp_path / "valid", [("given", "gegeben")])
    return tmp_path


def run(folder: Path, **changes: object) -> Path:
    filter_stage.run(params(**changes), folder / "train", folder / "valid", folder / "out")
    return folder / "out"


def test_kept_pairs_are_split(folder: Path) -> None:
    """Of the four kept pairs, the second and the fourth go to validation."""
    out = run(folder)
    assert list(read_folder(out / "train")) == [("a b", "c d"), ("a b", "c d")]
    assert list(read_folder(out / "valid")) == [("e f", "g h"), ("i", "j")]


def test_a_given_validation_set_is_used(folder: Path) -> None:
    """Then all kept pairs are for training."""
    out = run(folder, valid_every=None)
    assert len(list(read_folder(out / "train"))) == 4
    assert list(read_folder(out / "valid")) == [("given", "gegeben")]


def test_a_language_without_spaces_is_kept(folder: Path) -> None:
    """A Japanese sentence is one word; by characters, only the pair that is no translation is removed."""
    pairs = [
        ("the cat sleeps in the house", "猫は家の中で寝ている。"),
        ("yesterday we went to the sea", "昨日私たちは海に行きました。"),
        ("yes", "昨日私たちは海に行きました。"),
        ("the sea is blue and the sky is gray", "海は青く、空は灰色です。"),
    ]
    shutil.rmtree(folder / "train")
    write_folder(folder / "train", pairs)
    out = run(folder, max_ratio=2, ratio_of="characters", valid_every=None)
    assert list(read_folder(out / "train")) == [*pairs[:2], pairs[3]]
    assert "2.0 in characters" in (out / "rules.csv").read_text()
    out = run(folder, max_ratio=2, ratio_of="words", valid_every=None)
    assert list(read_folder(out / "train")) == [pairs[2]]


def test_the_report_counts_pairs_and_words(folder: Path) -> None:
    """Of six pairs, one has an empty side, one a bad ratio, one repeats; one in three is for validation."""
    report = json.loads((run(folder, drop_repeats=True) / "report.json").read_text())
    assert report == {
        "pairs_read": 6,
        "pairs_kept": 3,
        "removed": {"empty_side": 1, "too_long": 0, "ratio": 1, "repeat": 1},
        "train": {"pairs": 2, "source_words": 3, "target_words": 3},
        "valid": {"pairs": 1, "source_words": 2, "target_words": 2},
    }


def test_tables_can_be_read_back(folder: Path) -> None:
    """Both `dvc plots show` and people read them."""
    out = run(folder)
    rules = pd.read_csv(out / "rules.csv")
    assert rules["removed"].tolist() == [1, 0, 1, 0]
    assert rules["share"].tolist() == [0.166667, 0.0, 0.166667, 0.0]
    lengths = pd.read_csv(out / "lengths.csv")
    assert lengths.columns.tolist() == ["words", "source_read", "target_read", "source_kept", "target_kept"]
    assert lengths.sum()[["source_read", "target_kept"]].tolist() == [6, 4]


def test_each_rule_shows_a_few_pairs_that_it_removed(folder: Path) -> None:
    """Lengths are included because texts are truncated; the choice does not depend on the pairs' order."""
    long = [(f"{n} " * 200, "b") for n in range(9)]
    samples = []
    for pairs in (long, long[::-1]):
        write_folder(folder / "train", [*TRAIN, *pairs, *pairs])
        samples.append(json.loads((run(folder) / "removed.json").read_text()))
        shutil.rmtree(folder / "train")
    ours = {"source": "one", "target": "one two three", "source_words": 1, "target_words": 3}
    assert {"rule": "ratio", **ours} in samples[0]
    chosen = [[row["source"] for row in sample if row["rule"] == "too long"] for sample in samples]
    assert chosen[0] == chosen[1]
    assert len(set(chosen[0])) == 5
    assert {len(source) for source in chosen[0]} == {300}
    assert {row["source_words"] for row in samples[0]} == {0, 1, 200}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"max_words": 1, "max_ratio": 1.0, "drop_repeats": True, "valid_every": 9},
            "the filter keeps only 1 pair, so",
        ),
        ({"valid_every": 5}, "filter.valid_every is 5 but the filter keeps only 4 pairs"),
    ],
)
def test_too_few_pairs_leave_no_output(folder: Path, changes: dict[str, object], message: str) -> None:
    """An empty split would fail much later, in training."""
    with pytest.raises(ValueError, match=message):
        run(folder, **changes)
    assert sorted(path.name for path in folder.iterdir()) == ["train", "valid"]


def test_a_corpus_of_empty_lines_is_an_error(folder: Path) -> None:
    """This happens if an empty column was selected."""
    write_folder(folder / "train", [("", "")] * 3)
    with pytest.raises(ValueError, match=r"train: none of 3 pairs is kept \(removed: empty side 3"):
        run(folder)


def test_an_empty_validation_set_is_an_error(folder: Path) -> None:
    """Without a given or split-off validation set, training could not know when to stop."""
    write_folder(folder / "valid", [])
    with pytest.raises(ValueError, match=r"valid has no pairs, and filter\.valid_every is null"):
        run(folder, valid_every=None)
