"""The table of a sweep: labels, metrics and their order."""

import json
import shutil
from pathlib import Path
from typing import Any

from dvc.repo import Repo

from pipelines.results.comparison import Row, comparison, flat_metrics, labels_of, results_of
from pipelines.results.provenance import SIGNATURES, TEST_SET
from tests.flows import toy


def test_metrics_of_several_files_do_not_collide() -> None:
    """Each training has its own metrics."""
    files = {
        "data/evaluation/metrics.json": {"data": {"seeds": {"1": {"bleu": 7.0}}, "mean": {"bleu": 7.5}}},
        "data/trained/1/metrics.json": {"data": {"epochs": 3}},
        "data/trained/2/metrics.json": {"data": {"epochs": 4}},
        "data/filtered/report.json": {"error": {"type": "FileNotFoundError"}},
    }
    assert flat_metrics(files) == {"seeds.1.bleu": 7.0, "mean.bleu": 7.5, "1.epochs": 3, "2.epochs": 4}


def test_a_comparison_begins_with_what_differs_and_the_means() -> None:
    """Users compare these columns first; a row that failed gives the reason next to its settings."""
    rows = [Row("a", {"train.dropout": 0.1}, {"row": "x"}), Row("b", {"train.dropout": 0.2}, {"row": "y"})]
    results: dict[str, dict[str, Any]] = {
        "a": {"seeds.1.bleu": 7.0, "mean.bleu": 7.5, "std.bleu": 0.1},
        "b": {"failed": "train@1 ended"},
    }
    settings, scores = ["experiment", "row", "train.dropout", "failed"], ["seeds.1.bleu", "std.bleu"]
    assert list(comparison(rows, results)) == [*settings, "mean.bleu", "target_tokens_per_second", *scores]


def test_results_are_metrics_with_test_set_and_signature(tmp_path: Path) -> None:
    """Stage evaluate writes all three; a pipeline that writes only metrics is not an error."""
    Repo.init(str(tmp_path), no_scm=True).close()
    path = tmp_path / "data" / "evaluation" / "metrics.json"
    path.parent.mkdir(parents=True)
    path.write_text('{"mean": {"bleu": 7.5}}', encoding="utf-8")
    (tmp_path / "dvc.yaml").write_text("metrics: [data/evaluation/metrics.json]\n", encoding="utf-8")
    shutil.copy(toy.ROOT / "params.yaml", tmp_path)
    unknown = {"mean.bleu": 7.5, "target_tokens_per_second": None}  # nothing was trained
    assert results_of(tmp_path, []) == unknown
    for name, content in (
        (TEST_SET, {"name": "wmt14", "lines": 2737, "sha256": "00ff"}),
        (SIGNATURES, {"bleu": "tok:13a", "bleu_tokenized": "tok:none"}),
    ):
        (tmp_path / name).write_text(json.dumps(content), encoding="utf-8")
    found = {"test_set": "wmt14: 2,737 lines, sha256 00ff", "signature": "tok:none"}
    assert results_of(tmp_path, []) == found | unknown


def test_labels_tell_rows_apart() -> None:
    """The last part of a name is enough, unless two values share it."""

    def labels(a: dict[str, Any], b: dict[str, Any]) -> dict[str, str]:
        return labels_of([Row("a", a, {}), Row("b", b, {})])

    assert labels({"train.dropout": 1}, {"train.dropout": 2}) == {"a": "dropout=1", "b": "dropout=2"}
    assert labels({"download.train.0.pairs": 9}, {"download.test.0.pairs": 9}) == {
        "a": "download.train.0.pairs=9",
        "b": "download.test.0.pairs=9",
    }
