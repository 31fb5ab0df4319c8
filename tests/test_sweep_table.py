"""Tables of sweeps: their rows as parameters, and our figures next to those published."""

import math
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from dvc.repo import Repo

from convs2s.base.files import write_json
from convs2s.config.params import Params
from pipelines import sweep_table
from pipelines.sweep_table import (
    SIGNATURES,
    TEST_SET,
    SweepRow,
    format_sweep,
    list_tables,
    read_results,
    read_table,
    tabulate,
)
from tests.presets import change_preset, params_of

METRICS: dict[str, dict[str, Any]] = {
    "evaluation": {"mean": {"bleu_tokenized": 30.0}, "std": {"bleu_tokenized": 0.5}},
    "trained/1": {"validation_perplexity": 6.0},
    "trained/2": {"validation_perplexity": 7.0},
}
BASE = {"seeds": [1], "train": {"dropout": 0.1, "patience": 7}}
"""Values of params.yaml."""


def test_tables_have_the_papers_rows() -> None:
    """The rows were counted in the paper; those of Figure 2 are ours."""
    assert {name: len(read_table(name).rows) for name in list_tables()} == {
        "table4": 4, "table5": 10, "table7": 9, "table8": 9, "figure2": 14,
    }  # fmt: skip
    best = {name: max(row.bleu or 0 for row in read_table(name).rows) for name in list_tables()}
    assert best == {"table4": 21.7, "table5": 21.63, "table7": 21.63, "table8": 21.71, "figure2": 21.63}


@pytest.mark.parametrize("preset", ["ablation-en-de", "multi30k-en-de"])
@pytest.mark.parametrize("name", list_tables())
def test_every_row_gives_valid_parameters(name: str, preset: str) -> None:
    """Tables must suit the paper's model and small ones, and no two rows may give the same model."""
    rows = read_table(name).list_rows(params_of(preset).model)
    params = [Params.model_validate(change_preset(preset, row.changes)) for row in rows]
    same = Counter(one.model.model_dump_json() for one in params)
    assert max(same.values()) <= (2 if name == "figure2" else 1)  # both of its lines end at 13 and 5 layers


@pytest.mark.parametrize(
    ("table", "labels", "changes"),
    [
        ("table7", "7, 13", {"model.encoder_widths": [512] * 13, "model.encoder_kernels": [7] * 13}),
        ("table5", "1,3,5", {"model.attention": [True, False, True, False, True]}),
        ("table8", "5, 3", {"model.attention": [True] * 3, "model.decoder_kernels": [5] * 3}),
        ("table4", "-source position", {"model.source_positions": False}),
    ],
)
def test_a_row_is_the_model_that_the_paper_names(table: str, labels: str, changes: dict[str, object]) -> None:
    """Widths are those of the base; in a grid, row and column name a row only together."""
    rows = read_table(table).list_rows(params_of("ablation-en-de").model)
    (row,) = [row for row in rows if ", ".join(row.labels.values()) == labels]
    assert row.changes == row.changes | changes


@pytest.mark.parametrize(
    ("rows", "message"),
    [("[{row: a, colour: 3}]", "colour"), ("[", "is not valid YAML")],
)
def test_an_error_in_a_table_names_its_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rows: str, message: str
) -> None:
    """There are several tables, so the error must say which one."""
    monkeypatch.setattr(sweep_table, "TABLES", tmp_path)
    (tmp_path / "mine.yaml").write_text(f"rows: {rows}\n", encoding="utf-8")
    with pytest.raises(ValueError, match=rf"(?s)mine\.yaml.*{message}"):
        read_table("mine")
    with pytest.raises(FileNotFoundError, match=r"expected a table, .* found 'other'; known here: mine"):
        read_table("other")


def test_results_are_means_over_seeds_with_test_set_and_signature(tmp_path: Path) -> None:
    """The BLEU of the paper's tables is that before unknown words are replaced (§5.4)."""
    Repo.init(str(tmp_path), no_scm=True).close()
    paths = [f"data/{folder}/metrics.json" for folder in METRICS]
    for path, content in zip(paths, METRICS.values(), strict=True):
        write_json(tmp_path / path, content)
    write_json(tmp_path / "dvc.yaml", {"metrics": paths})
    results = read_results(tmp_path)
    expected = {
        "perplexity": 6.5, "perplexity, std": math.sqrt(0.5), "1.validation_perplexity": 6.0,
        "bleu_tokenized": 30.0, "bleu_tokenized, std": 0.5, "mean.bleu_tokenized": 30.0,
    }  # fmt: skip
    assert {name: results[name] for name in expected} == pytest.approx(expected)
    replaced = METRICS["evaluation"] | {"without_replacement": {"mean": {"bleu_tokenized": 28.0}}}
    write_json(tmp_path / paths[0], replaced)
    write_json(tmp_path / SIGNATURES, {"bleu_tokenized": "tok:none"})
    write_json(tmp_path / TEST_SET, {"name": "wmt14", "lines": 2737, "sha256": "00ff"})
    results = read_results(tmp_path)
    assert (results["bleu_tokenized"], results["mean.bleu_tokenized"]) == (28.0, 30.0)
    assert (results["signature"], results["test_set"]) == ("tok:none", "wmt14: 2,737 lines, sha256 00ff")


def test_a_comparison_begins_with_what_differs_and_the_figures() -> None:
    """Users compare these columns first; a row that failed gives the reason next to its settings."""
    paper = {"perplexity, paper": 6.6, "bleu_tokenized, paper": None}
    rows = {name: SweepRow({"train.dropout": 0.1}, {"side": name}, paper) for name in ("x", "y")}
    results: dict[str, dict[str, Any]] = {
        "x": {"std.bleu": 0.1, "perplexity, std": 0.2, "bleu_tokenized": 7.5, "perplexity": 6.5},
        "y": {"failed": "train@1 ended"},
    }
    table = tabulate(rows, results, BASE)
    figures = ["perplexity, paper", "perplexity", "perplexity, std", "bleu_tokenized"]
    assert list(table) == ["side", "failed", *figures, "train.dropout", "std.bleu", "experiment"]
    assert table["failed"].isna().tolist() == [True, False]


def test_what_a_terminal_shows_is_what_differs() -> None:
    """It is the reason for the sweep. A row that leaves a value alone has that of params.yaml.

    Values that are equal in all rows are left out; the names are those that `make report RUNS=` takes.
    """
    changes: list[dict[str, Any]] = [{}, {"train.dropout": 0.3}, {"train.patience": 4, "train.dropout": 0.1}]
    rows = {
        f"mine-{number}": SweepRow({**change, "seeds": [1]}, {"row": f"row {number}"}, {})
        for number, change in enumerate(changes)
    }
    results = {name: {"perplexity": 6.123, "mean.bleu": 20.0, "mean.chrf": 40.0} for name in rows}
    lines = format_sweep(tabulate(rows, results, BASE), rows).splitlines()
    assert lines[0].split() == [
        "row", "train.dropout", "train.patience", "perplexity", "mean.bleu", "experiment",
    ]  # fmt: skip
    assert [line.split()[2:] for line in lines[1:]] == [
        ["0.1", "7", "6.12", "20.0", "mine-0"],
        ["0.3", "7", "6.12", "20.0", "mine-1"],
        ["0.1", "4", "6.12", "20.0", "mine-2"],
    ]


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (b"row: a, encoder: {layers: 1000000000, kernel: 3}", "layers: expected less than or equal to 1000,"),
        (b"row: a, encoder: {layers: 2, kernel: 9999}", "kernel: expected less than or equal to 1024,"),
        (b"row: \xff", "line 1: byte 13 is 0xff, which is not UTF-8"),
    ],
)
def test_an_odd_table_is_refused(
    row: bytes, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The message names the file. Such a number of layers would fill the memory."""
    monkeypatch.setattr(sweep_table, "TABLES", tmp_path)
    (tmp_path / "odd.yaml").write_bytes(b"rows: [{" + row + b"}]\n")
    with pytest.raises(ValueError, match=rf"(?s)odd\.yaml.*{message}"):
        read_table("odd")
