"""Stage filter."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from convs2s.base.files import Pair, read_folder, write_folder
from convs2s.config.section import NOTHING
from convs2s.config.text import AugmentParams, FilterParams
from pipelines.stages import filter as filter_stage

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
    """By hand: of six pairs, one has an empty side, one a bad ratio and one repeats.

    Of the three that are left, one is for validation. Validation pairs from elsewhere are not used then.
    """
    out = run(tmp_path, drop_repeats=True, valid_every=2)
    assert list(read_folder(out / "train")) == [("a b", "c d"), ("i k", "j l m")]
    assert list(read_folder(out / "valid")) == [("e f", "g h")]


def test_validation_pairs_that_are_given_are_taken(tmp_path: Path) -> None:
    """Then all pairs that are kept are for training."""
    out = run(tmp_path)
    assert len(list(read_folder(out / "train"))) == 4
    assert list(read_folder(out / "valid")) == [("given", "gegeben")]


def test_the_report_counts_what_was_removed_and_what_was_kept(tmp_path: Path) -> None:
    """People read in it whether the limits suit their corpus, and whether the test set is in it."""
    out = run(tmp_path, drop_repeats=True, valid_every=2)
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
        "suspects": {},
    }


def test_suspects_are_counted_and_stay(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Whether a corpus is meant to be like that, only people know; the warning says what removes them."""
    pairs = [*TRAIN, ("<b>one</b>", "eins")]
    report = json.loads((run(tmp_path, pairs, valid_every=2) / "report.json").read_text())
    assert report["suspects"] == {
        "markup": {"pairs": 1, "of": 7, "first": 7},
        "repeats": {"pairs": 1, "of": 7, "first": 0},
    }
    advice = "To keep only the first of equal pairs: filter.drop_repeats: true"
    assert f"train: 1 pair of 7 repeat an earlier pair. {advice}" in report["warnings"]
    assert f"filter: warning: train: 1 pair of 7 repeat an earlier pair. {advice}" in capfd.readouterr().err
    assert "<b>one</b>" in (tmp_path / "out" / "train" / "source.txt").read_text().split("\n")


def test_rules_and_lengths_are_tables(tmp_path: Path) -> None:
    """The report's page draws them; all pairs read, and all pairs kept, are in some class of lengths."""
    out = run(tmp_path, drop_repeats=True, valid_every=2)
    assert pd.read_csv(out / "rules.csv")["removed"].tolist() == [1, 0, 1, 1]
    lengths = pd.read_csv(out / "lengths.csv").sum()
    assert lengths["source_read"] == 6
    assert lengths["target_kept"] == 3


AUGMENTED = [("a b", "c d"), ("k l", "m"), ("n", "o"), ("p", "")]


def test_translated_pairs_are_filtered_like_others_and_tagged(tmp_path: Path) -> None:
    """The tag is no word: with it, the source "k l" would be too long for "m"."""
    out = run(tmp_path, TRAIN[:1], AUGMENTED, tag="<bt>", max_ratio=2.0)
    assert list(read_folder(out / "train")) == [
        ("a b", "c d"), ("<bt> a b", "c d"), ("<bt> k l", "m"), ("<bt> n", "o"),
    ]  # fmt: skip


def test_translated_pairs_are_counted(tmp_path: Path) -> None:
    """They count among the pairs that were kept or, if a side is empty, among those that were removed."""
    out = run(tmp_path, TRAIN[:1], AUGMENTED, tag="<bt>", max_ratio=2.0)
    report = json.loads((out / "report.json").read_text())
    assert report["pairs_kept"] == 4
    assert report["translated"] == 3
    assert report["removed"]["empty_side"] == 1


def test_a_translated_pair_may_repeat_a_training_pair(tmp_path: Path) -> None:
    """Without a tag the two are the same, and only the first is kept."""
    out = run(tmp_path, TRAIN[:1], AUGMENTED, drop_repeats=True)
    assert list(read_folder(out / "train")) == [("a b", "c d"), ("n", "o")]


def test_without_keep_translated_pairs_take_the_place_of_the_training_pairs(tmp_path: Path) -> None:
    """A student may learn from its teacher's translations alone."""
    out = run(tmp_path, TRAIN, AUGMENTED, keep=False, drop_repeats=True)
    assert list(read_folder(out / "train")) == [("a b", "c d"), ("n", "o")]


def test_a_share_of_the_test_set_in_training_stops_the_stage(tmp_path: Path) -> None:
    """Scores on sentences that were trained are worthless; one test pair of three is 33.3 %."""
    with pytest.raises(
        ValueError, match=r"download\.test: expected at most 33\.00% .* found 1 of 3, and 2 of"
    ):
        run(tmp_path, max_overlap=0.33)


def test_a_smaller_share_of_the_test_set_is_a_warning(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Short sentences may be in any two corpora."""
    run(tmp_path, max_overlap=0.34)
    assert "filter: warning: test: 1 pair of 3 are also in" in capsys.readouterr().err


def test_null_allows_any_share_of_the_test_set(tmp_path: Path) -> None:
    """It turns the limit off, for those who know why the two overlap."""
    out = run(tmp_path, max_overlap=None)
    assert (out / "report.json").is_file()


REMOVED_LONG = [(f"{n} " * 200, "b") for n in range(9)] * 2


def read_removed(out: Path) -> list[dict[str, Any]]:
    """Return the pairs that the report shows, with the rule that removed them."""
    rows: list[dict[str, Any]] = json.loads((out / "removed.json").read_text())
    return rows


def test_each_rule_shows_a_few_pairs_that_it_removed(tmp_path: Path) -> None:
    """A reader judges by them whether the rule removes what it should; five of each suffice."""
    rows = read_removed(run(tmp_path, [*TRAIN, *REMOVED_LONG]))
    assert {"rule": "ratio", "source": "one", "target": "1 2 3", "source_words": 1, "target_words": 3} in rows
    assert len({row["source"] for row in rows if row["rule"] == "too long"}) == 5


def test_removed_pairs_are_shown_truncated_with_their_whole_length(tmp_path: Path) -> None:
    """A line may have a million characters. Its full length, in words, explains why it was removed."""
    rows = read_removed(run(tmp_path, [*TRAIN, *REMOVED_LONG]))
    assert {len(row["source"]) for row in rows if row["rule"] == "too long"} == {300}
    assert {row["source_words"] for row in rows} == {0, 1, 200}


def test_the_removed_pairs_shown_do_not_depend_on_the_pairs_order(tmp_path: Path) -> None:
    """Otherwise they would be the first ones, which often come from one text."""
    one = read_removed(run(tmp_path, [*TRAIN, *REMOVED_LONG]))
    other = read_removed(run(tmp_path, [*TRAIN, *REMOVED_LONG[::-1]]))
    assert one == other


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
