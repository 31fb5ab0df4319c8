"""Stage filter."""

import json
from collections.abc import Sequence
from pathlib import Path

import pandas as pd
import pytest

from convs2s.base.files import read_folder, write_folder
from convs2s.config.section import NOTHING
from convs2s.config.text import AugmentParams, FilterParams
from convs2s.text.corpus.filter import Pair
from pipelines.stages import filter as filter_stage

ROOT = Path(__file__).parents[2]
TRAIN = [("a b", "c d"), ("", "x"), ("e f", "g h"), ("one", "1 2 3"), ("a b", "c d"), ("i k", "j l m")]
TEST = [("a b", "c d"), ("new", "neu"), ("e f", "h g")]
NO_LIMITS = {
    "max_words": None, "max_ratio": None, "ratio_of": "words", "drop_empty": True, "drop_repeats": False,
    "max_overlap": 0.5, "valid_every": None,
}  # fmt: skip


def run(
    folder: Path,
    train: list[Pair] = TRAIN,
    augmented: Sequence[Pair] = (),
    keep: bool = True,
    tag: str | None = None,
    **changes: object,
) -> Path:
    """Run the stage with these changes to its values; return its output."""
    write_folder(folder / "train", train)
    write_folder(folder / "augmented", augmented)
    write_folder(folder / "valid", [("given", "gegeben")])
    for split, pairs in {"train": train, "valid": [], "development": [], "test": TEST}.items():
        write_folder(folder / "raw" / split, pairs)
    params = FilterParams.model_validate(NO_LIMITS | {"max_words": 175, "max_ratio": 1.5} | changes)
    folders = (folder / name for name in ("raw", "train", "augmented", "valid", "out"))
    translated = AugmentParams(models="m", text=NOTHING, tag=tag, keep=keep)
    filter_stage.run(params, translated, ("en", "xf"), *folders)
    return folder / "out"


def test_kept_pairs_are_split_and_counted(tmp_path: Path) -> None:
    """Of six pairs, one has an empty side, one a bad ratio, one repeats; one in three is for validation."""
    out = run(tmp_path, drop_repeats=True, valid_every=2)
    assert list(read_folder(out / "train")) == [("a b", "c d"), ("i k", "j l m")]
    assert list(read_folder(out / "valid")) == [("e f", "g h")]
    assert json.loads((out / "report.json").read_text()) == {
        "pairs_read": 6,
        "pairs_kept": 3,
        "removed": {"empty_side": 1, "too_long": 0, "ratio": 1, "repeat": 1},
        "train": {"pairs": 2, "source_words": 4, "target_words": 5},
        "valid": {"pairs": 1, "source_words": 2, "target_words": 2},
        "overlap": {"test": {"pairs": 1, "sources": 2, "of": 3}},
        "warnings": [
            "language xf: expected an ISO 639 code, such as de; no language has this one",
            "test: 1 pair of 3 are also in the training data",
        ],
    }
    rules, lengths = (pd.read_csv(out / f"{name}.csv") for name in ("rules", "lengths"))
    assert rules["removed"].tolist() == [1, 0, 1, 1]
    assert lengths.sum()[["source_read", "target_kept"]].tolist() == [6, 3]
    out = run(tmp_path)
    assert len(list(read_folder(out / "train"))) == 4
    assert list(read_folder(out / "valid")) == [("given", "gegeben")]


def test_translated_pairs_are_filtered_like_others_and_tagged(tmp_path: Path) -> None:
    """The tag is no word: with it, "a b" would be too long a source for "c". Without `keep`, they are all."""
    augmented = [("a b", "c d"), ("k l", "m"), ("n", "o"), ("p", "")]
    out = run(tmp_path, TRAIN[:1], augmented, tag="<bt>", max_ratio=2.0)
    assert list(read_folder(out / "train")) == [
        ("a b", "c d"), ("<bt> a b", "c d"), ("<bt> k l", "m"), ("<bt> n", "o"),
    ]  # fmt: skip
    report = json.loads((out / "report.json").read_text())
    assert (report["pairs_kept"], report["translated"], report["removed"]["empty_side"]) == (4, 3, 1)
    out = run(tmp_path, TRAIN, augmented, keep=False, drop_repeats=True)
    assert list(read_folder(out / "train")) == [("a b", "c d"), ("n", "o")]
    out = run(tmp_path, TRAIN[:1], augmented, drop_repeats=True)
    assert list(read_folder(out / "train")) == [("a b", "c d"), ("n", "o")]


def test_a_share_of_the_test_set_in_training_stops_the_stage(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A warning is all that a smaller share gets, and null turns the limit off."""
    run(tmp_path, max_overlap=0.34)
    assert "filter: warning: test: 1 pair of 3 are also in" in capsys.readouterr().err
    run(tmp_path, max_overlap=None)
    with pytest.raises(
        ValueError, match=r"download\.test: expected at most 33\.00% .* found 1 of 3, and 2 of"
    ):
        run(tmp_path, max_overlap=0.33)


def test_each_rule_shows_a_few_pairs_that_it_removed(tmp_path: Path) -> None:
    """Lengths are included because texts are truncated; the choice does not depend on the pairs' order."""
    long = [(f"{n} " * 200, "b") for n in range(9)] * 2
    one, other = (
        json.loads((run(tmp_path, [*TRAIN, *pairs]) / "removed.json").read_text())
        for pairs in (long, long[::-1])
    )
    ours = {"source": "one", "target": "1 2 3", "source_words": 1, "target_words": 3}
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
    assert sorted(path.name for path in tmp_path.iterdir()) == ["augmented", "raw", "train", "valid"]
