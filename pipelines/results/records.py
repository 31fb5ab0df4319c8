"""Recorded results: experiments/records/NAME.json, and NAME.csv with the rows of a table."""

import csv
import re
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import Field, TypeAdapter, model_validator

from convs2s.config.section import Section
from pipelines.results.ablation import SPEED
from pipelines.results.costs import TrainingCost
from pipelines.results.paper import Kind, Paper
from pipelines.results.reading import checked, read

Scores = dict[str, float]
COLUMNS: dict[Kind, tuple[str, ...]] = {
    "sweep": (
        *("row", "column", "paper_perplexity", "paper_bleu", "perplexity", "perplexity_std"),
        *("bleu", "bleu_std", "seeds", SPEED),
    ),
    "speed": ("system", "beam", "bleu", "seconds", "sentences_per_second", "tokens_per_second"),
}
"""Columns of NAME.csv by the kind of table: numbers or empty, but for names."""
NAMES = {"row", "system"}
NUMBER = re.compile(r"([-+]?\d+(\.\d*)?(e[-+]?\d+)?)?")
LATER = {SPEED}  # columns that older files lack


class SeedMetrics(Section):
    """Scores as stage evaluate writes them, for each seed and over all."""

    seeds: Annotated[dict[str, Scores], Field(min_length=1)]
    mean: Scores
    std: Scores | None = None
    ensemble: Scores | None = None
    without_replacement: "SeedMetrics | None" = None


class Record(Section):
    """What every record has."""

    preset: str
    changes: dict[str, Any]  # values of params.yaml that differ from the preset's, by dotted name
    commit: Annotated[str, Field(pattern=r"^[0-9a-f]{40}$")]  # of the code that gave the result
    date: Annotated[str, Field(pattern=r"^\d{4}-\d\d-\d\d$")]  # of recording
    cost: TrainingCost | None  # null if unknown
    signatures: dict[str, str]  # how each score was computed, by its name
    test_set: Annotated[str, Field(min_length=1)]  # name, lines and hash


class RunRecord(Record):
    """A run of the whole pipeline."""

    kind: Literal["run"]
    metrics: SeedMetrics
    perplexities: Scores  # best validation perplexity of each seed

    @model_validator(mode="after")
    def _seeds_agree(self) -> Self:
        if set(self.perplexities) != set(self.metrics.seeds):
            raise ValueError(
                f"perplexities are of seeds {', '.join(self.perplexities)}, but metrics of "
                f"{', '.join(self.metrics.seeds)}; wanted the same seeds"
            )
        return self

    def scores(self) -> dict[str, Scores]:
        """Return all scores of each seed, `perplexity` first."""
        return {
            seed: {"perplexity": self.perplexities[seed], **scores}
            for seed, scores in self.metrics.seeds.items()
        }


class TableRecord(Record):
    """A table of the paper in ours: rows, a picture, or both."""

    kind: Literal["table"]
    table: str  # key of a table of the paper
    picture: str | None  # path from the repository's root
    rows: tuple[dict[str, str], ...] = ()  # of NAME.csv, values as they are in the file


Records = dict[str, RunRecord | TableRecord]
RECORD: TypeAdapter[RunRecord | TableRecord] = TypeAdapter(
    Annotated[RunRecord | TableRecord, Field(discriminator="kind")]
)


def read_records(folder: Path, paper: Paper) -> Records:
    """Read all records of a folder, by name; raise ValueError if one has faults, or rows have no record."""
    records = {path.stem: read_record(path, paper) for path in sorted(folder.glob("*.json"))}
    for path in folder.glob("*.csv"):
        if not isinstance(records.get(path.stem), TableRecord):
            raise ValueError(f"{path} has no {path.stem}.json of kind table beside it; record it again.")
    return records


def read_record(path: Path, paper: Paper) -> RunRecord | TableRecord:
    """Read a record with its rows; raise ValueError if it has faults, or the paper has no such table."""
    content, table = read(path), path.with_suffix(".csv")
    record = checked(RECORD, content, path)
    if isinstance(record, TableRecord):
        kind = kind_of(record.table, paper, f"{path}: table")
        if table.is_file():
            record = checked(RECORD, {**content, "rows": read_rows(table, kind)}, path)
        elif record.picture is None:
            raise ValueError(f"{path} has neither a picture nor {table.name} beside it; record it again.")
    return record


def kind_of(key: str, paper: Paper, where: str) -> Kind:
    """Return the kind of a table of the paper; raise ValueError if it has none of this key."""
    if key not in paper:
        raise ValueError(f"{where}: found {key!r}; wanted one of: {', '.join(paper)}.")
    return paper[key].kind


def read_rows(path: Path, kind: Kind) -> list[dict[str, str]]:
    """Return the rows of a table of this kind; a column too new for the file is empty, others are ignored.

    Raises:
        ValueError: if the file lacks a column or a value, or a value is no number.
    """
    wanted = COLUMNS.get(kind, ())
    with path.open(encoding="utf-8", newline="") as stream:
        reader = csv.DictReader(stream)
        rows, found = list(reader), reader.fieldnames or []
    if set(wanted) - LATER - set(found):
        raise ValueError(f"{path}: found columns {', '.join(found)}; wanted {', '.join(wanted)}.")
    for line, row in enumerate(rows, start=2):
        if None in row or None in row.values():
            raise ValueError(f"{path}, line {line}: wanted {len(found)} values, one per column.")
        for column in (set(wanted) & set(found)) - NAMES:
            if not NUMBER.fullmatch(row[column]):
                fault = f"found {row[column]!r}; wanted a number or nothing"
                raise ValueError(f"{path}, line {line}, {column}: {fault}.")
    return [{column: row.get(column, "") for column in wanted} for row in rows]
