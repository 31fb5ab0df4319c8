"""The benchmark of the server."""

import json
from pathlib import Path

import pytest

from benchmarks.serve import COLUMNS, main
from tests.package.small_package import write_small_package


@pytest.mark.slow
def test_it_measures_each_number_of_clients(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It measures with and without batching. Starting servers is slow."""
    (tmp_path / "lines").write_text("ein Haus\n\nein Hund\n", encoding="utf-8")
    model, file = write_small_package(tmp_path), tmp_path / "rows.json"
    options = ["--source", str(tmp_path / "lines"), "--clients", "1", "2", "--requests", "6"]
    main(["--model", str(model), *options, "--json", str(file)])
    assert len(capsys.readouterr().out.splitlines()) == 6
    rows = [list(row.values()) for row in json.loads(file.read_text(encoding="utf-8"))["results"]]
    assert [row[:3] for row in rows] == [
        ["together", 1, 6], ["together", 2, 6], ["alone", 1, 6], ["alone", 2, 6],
    ]  # fmt: skip
    for *_, speed, p50, p95, p99 in rows:
        assert len(COLUMNS) == 7 and speed > 0 and 0 < p50 <= p95 <= p99
