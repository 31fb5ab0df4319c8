"""Committed results of runs: experiments/records/NAME.json, and NAME.csv for the rows of a table."""

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import Field, TypeAdapter, model_validator

from convs2s.config.section import Section
from convs2s.text.corpus.files import open_bytes
from pipelines.results.paper import Kind, Paper
from pipelines.results.reading import read_checked

Scores = dict[str, float]
TABLE_COLUMNS: dict[Kind, tuple[str, ...]] = {
    "sweep": (
        *("row", "column", "paper_perplexity", "paper_bleu", "perplexity", "perplexity_std"),
        *("bleu", "bleu_std", "seeds", "target_tokens_per_second"),
    ),
    "speed": ("system", "beam", "bleu", "seconds", "sentences_per_second", "tokens_per_second"),
}
"""Columns of experiments/records/NAME.csv by the kind of table; all but names are numbers or empty."""
NAMES = {"row", "system"}
LATER = {"target_tokens_per_second"}
"""Columns that older files lack."""


class Cost(Section):
    """What trainings took, all together."""

    hardware: tuple[str, ...]
    """Number and name of the devices of each training, each said once."""
    hours: dict[Literal["GPU", "CPU core"], float]
    """Hours times devices, all trainings added."""
    torch: tuple[str, ...]
    """Versions of PyTorch."""
    target_tokens_per_second: float | None = None
    """Of their updates alone, without validation, all workers together; null in older records."""


class Metrics(Section):
    """Scores as stage evaluate writes them, for each seed and over them."""

    seeds: Annotated[dict[str, Scores], Field(min_length=1)]
    mean: Scores
    std: Scores | None = None
    ensemble: Scores | None = None
    without_replacement: "Metrics | None" = None


class Record(Section):
    """What every record has."""

    preset: str
    changes: dict[str, Any]
    """Values of params.yaml other than the preset's, by dotted name."""
    commit: Annotated[str, Field(pattern=r"^[0-9a-f]{40}$")]
    """Whose code gave the result."""
    date: Annotated[str, Field(pattern=r"^\d{4}-\d\d-\d\d$")]
    """Of recording."""
    cost: Cost | None
    """Of the trainings; null where nothing has kept it."""
    signatures: dict[str, str]
    """How each score was computed, by its name."""
    test_set: Annotated[str, Field(min_length=1)]
    """Name, lines and hash."""


class RunRecord(Record):
    """A run of the whole pipeline."""

    kind: Literal["run"]
    metrics: Metrics
    perplexities: dict[str, float]
    """Best validation perplexity of each seed."""

    @model_validator(mode="after")
    def _seeds_agree(self) -> Self:
        if set(self.perplexities) != set(self.metrics.seeds):
            raise ValueError(
                f"perplexities are of seeds {', '.join(self.perplexities)}, but metrics of "
                f"{', '.join(self.metrics.seeds)}; wanted the same seeds"
            )
        return self


class TableRecord(Record):
    """A table of the paper in ours: rows, a picture, or both."""

    kind: Literal["table"]
    table: str
    """Key of a table in experiments/records/paper.yaml."""
    picture: str | None
    """Path of a picture from the repository's root."""


RECORD: TypeAdapter[RunRecord | TableRecord] = TypeAdapter(
    Annotated[RunRecord | TableRecord, Field(discriminator="kind")]
)


@dataclass(frozen=True)
class Records:
    """All that is recorded, by name; `rows` are those of tables, values as they stand in the file."""

    runs: Mapping[str, RunRecord]
    tables: Mapping[str, TableRecord]
    rows: Mapping[str, list[dict[str, str]]]


def read_records(folder: Path, paper: Paper) -> Records:
    """Read all records of a folder.

    Raises:
        ValueError: if one is not valid, or a table has neither rows nor picture, or rows have no record.
    """
    found = {path.stem: read_record(path) for path in sorted(folder.glob("*.json"))}
    tables = {name: record for name, record in found.items() if isinstance(record, TableRecord)}
    rows = {}
    for path in sorted(folder.glob("*.csv")):
        if path.stem not in tables:
            raise ValueError(f"{path} has no {path.stem}.json of kind table beside it; record it again.")
        rows[path.stem] = read_rows(path, kind_of(tables[path.stem], folder / f"{path.stem}.json", paper))
    for name, record in tables.items():
        kind_of(record, folder / f"{name}.json", paper)
        if name not in rows and record.picture is None:
            raise ValueError(f"{folder / name}.json has neither a picture nor {name}.csv beside it.")
    runs = {name: record for name, record in found.items() if isinstance(record, RunRecord)}
    return Records(runs, tables, rows)


def read_record(path: Path) -> RunRecord | TableRecord:
    """Read one record.

    Raises:
        ValueError: if it is not valid, with file and key.
    """
    return read_checked(RECORD, path)


def kind_of(record: TableRecord, path: Path, paper: Paper) -> Kind:
    """Return the kind of a record's table.

    Raises:
        ValueError: if the paper has no such table.
    """
    try:
        return paper.table(record.table).kind
    except KeyError as error:
        raise ValueError(f"{path}: table: {error.args[0]}") from None


def read_rows(path: Path, kind: Kind, more: bool = False) -> list[dict[str, str]]:
    """Read the rows of a table of this kind; with `more`, the file may have further columns, which are left.

    A column that the file is too old to have is empty.

    Raises:
        ValueError: if columns are others than the kind's, or a value is no number.
    """
    wanted = TABLE_COLUMNS.get(kind, ())
    older = tuple(name for name in wanted if name not in LATER)
    with open_bytes(path) as stream:
        lines = stream.read().decode("utf-8").split("\n")
    header, *rows = list(csv.reader(line for line in lines if line)) or [[]]
    if more and set(header) >= set(older):
        places = [header.index(name) for name in wanted if name in header]
        header, *rows = [[row[place] for place in places] for row in (header, *rows)]
    if tuple(header) not in {wanted, older}:
        raise ValueError(f"{path}: found columns {', '.join(header)}; wanted {', '.join(wanted)}.")
    for number, row in enumerate(rows, start=2):
        check_row(f"{path}, line {number}", header, row)
    return [dict.fromkeys(wanted, "") | dict(zip(header, row, strict=True)) for row in rows]


def check_row(where: str, columns: Sequence[str], row: list[str]) -> None:
    """See that a row has a number or nothing in each column that is no name.

    Raises:
        ValueError: if not.
    """
    if len(row) != len(columns):
        raise ValueError(f"{where}: found {len(row)} values; wanted {len(columns)}.")
    for column, value in zip(columns, row, strict=True):
        try:
            float(value or 0) if column not in NAMES else None
        except ValueError:
            raise ValueError(f"{where}, {column}: found {value!r}; wanted a number or nothing.") from None
