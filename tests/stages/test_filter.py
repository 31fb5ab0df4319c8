"""Stage filter."""

import json
from pathlib import Path

import pandas as pd
import pytest

from convs2s.config.filter import FilterParams
from convs2s.text.corpus.files import read_folder, write_folder
from convs2s.text.corpus.filter import Pair
from pipelines.stages import filter as filter_stage

TRAIN = [("a b", "c d"), ("", "x"), ("e f", "g h"), ("one", "one two three"), ("a b", "c d"), ("i", "j")]
NO_LIMITS = {
    "max_words": None, "max_ratio": None, "ratio_of": "words", "drop_empty": True, "drop_repeats": False,
    "valid_every": None,
}  # fmt: skip


def run(folder: Path, train: list[Pair] = TRAIN, **changes: object) -> Path:
    """Run the stage with these changes to its values; return its output."""
    write_folder(folder / "train", train)
    write_folder(folder / "valid", [("given", "gegeben")])
    params = FilterParams.model_validate(NO_LIMITS | {"max_words": 175, "max_ratio": 1.5} | changes)
    filter_stage.run(params, folder / "train", folder / "valid", folder / "out")
    return folder / "out"


def test_kept_pairs_are_split_and_counted(tmp_path: Path) -> None:
    """Of six pairs, one has an empty side, one a bad ratio, one repeats; one in three is for validation."""
    out = run(tmp_path, drop_repeats=True, valid_every=2)
    assert list(read_folder(out / "train")) == [("a b", "c d"), ("i", "j")]
    assert list(read_folder(out / "valid")) == [("e f", "g h")]
    assert json.loads((out / "report.json").read_text()) == {
        "pairs_read": 6,
        "pairs_kept": 3,
        "removed": {"empty_side": 1, "too_long": 0, "ratio": 1, "repeat": 1},
        "train": {"pairs": 2, "source_words": 3, "target_words": 3},
        "valid": {"pairs": 1, "source_words": 2, "target_words": 2},
    }
    rules, lengths = (pd.read_csv(out / f"{name}.csv") for name in ("rules", "lengths"))
    assert rules["removed"].tolist() == [1, 0, 1, 1]
    assert lengths.sum()[["source_read", "target_kept"]].tolist() == [6, 3]
    out = run(tmp_path)
    assert len(list(read_folder(out / "train"))) == 4
    assert list(read_folder(out / "valid")) == [("given", "gegeben")]


def test_each_rule_shows_a_few_pairs_that_it_removed(tmp_path: Path) -> None:
    """Lengths are included because texts are truncated; the choice does not depend on the pairs' order."""
    long = [(f"{n} " * 200, "b") for n in range(9)] * 2
    one, other = (
        json.loads((run(tmp_path, [*TRAIN, *pairs]) / "removed.json").read_text())
        for pairs in (long, long[::-1])
    )
    ours = {"source": "one", "target": "one two three", "source_words": 1, "target_words": 3}
    assert {"rule": "ratio", **ours} in one
    assert one == other
    chosen = {row["source"] for row in one if row["rule"] == "too long"}
    assert (len(chosen), {len(source) for source in chosen}) == (5, {300})
    assert {row["source_words"] for row in one} == {0, 1, 200}


@pytest.mark.parametrize(
    ("train", "message"),
    [
        (TRAIN, "filter.valid_every is 5, and the filter keeps 4 pairs"),
        ([("", "")] * 3, r"train: none of 3 pairs is kept \(removed: empty side 3"),
    ],
)
def test_too_few_pairs_leave_no_output(tmp_path: Path, train: list[Pair], message: str) -> None:
    """An empty split would fail much later, in training."""
    with pytest.raises(ValueError, match=message):
        run(tmp_path, train, valid_every=5)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["train", "valid"]
