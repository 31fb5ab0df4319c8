"""The benchmark of the server."""

import json
from pathlib import Path

import pytest

from benchmarks.serve import COLUMNS, main, percentiles
from tests.package.small_package import write_small_package


def test_percentiles_are_milliseconds() -> None:
    """By hand for 1 to 101 ms; for a single value, each percentile is that value."""
    assert percentiles([i / 1000 for i in range(1, 102)]) == (51.0, 96.0, 100.0)
    assert percentiles([0.002]) == (2.0, 2.0, 2.0)


@pytest.mark.slow
def test_it_measures_each_number_of_clients(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It measures with and without batching; the JSON matches the table. Starting servers is slow."""
    (tmp_path / "lines").write_text("ein Haus\n\nein Hund\n", encoding="utf-8")
    model, file = write_small_package(tmp_path), tmp_path / "rows.json"
    options = ["--source", str(tmp_path / "lines"), "--clients", "1", "2", "--requests", "6"]
    main(["--model", str(model), *options, "--json", str(file)])
    printed = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in capsys.readouterr().out.splitlines()[2:]
    ]
    rows = json.loads(file.read_text(encoding="utf-8"))["rows"]
    assert [tuple(row) for row in rows] == [COLUMNS] * 4
    assert [[str(value) for value in row.values()] for row in rows] == printed
    assert [(row["batches"], row["clients"], row["requests"]) for row in rows] == [
        ("together", 1, 6), ("together", 2, 6), ("alone", 1, 6), ("alone", 2, 6),
    ]  # fmt: skip


def test_a_file_without_text_is_named(tmp_path: Path) -> None:
    """The check comes before a server starts."""
    (tmp_path / "lines").write_text("\n", encoding="utf-8")
    with pytest.raises(ValueError, match="lines has no text; wanted lines to translate"):
        main(["--model", "nowhere", "--source", str(tmp_path / "lines")])
