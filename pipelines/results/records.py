"""Recorded results: experiments/records/NAME.json, and NAME.csv with the rows of a table."""

import csv
import re
from pathlib import Path
from statistics import fmean
from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from convs2s.config.section import Section
from pipelines.results.comparison import COLUMNS
from pipelines.results.costs import TrainingCost
from pipelines.results.markdown import figure
from pipelines.results.paper import SPEED
from pipelines.results.reading import checked, read

Scores = dict[str, float]
NUMBER = re.compile(r"([-+]?\d+(\.\d*)?(e[-+]?\d+)?)?")


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
        ours, theirs = (", ".join(one) for one in (self.perplexities, self.metrics.seeds))
        if set(self.perplexities) != set(self.metrics.seeds):
            raise ValueError(
                f"perplexities are of seeds {ours}, but metrics of {theirs}; wanted the same seeds"
            )
        return self

    def scores(self) -> dict[str, Scores]:
        """Return all scores of each seed, `perplexity` first."""
        return {seed: {"perplexity": self.perplexities[seed], **s} for seed, s in self.metrics.seeds.items()}

    def results(self, score: str) -> dict[str, str]:
        """Return mean, best and ensemble, with the number of models; nothing if a seed lacks the score."""
        values = [scores[score] for scores in self.scores().values() if score in scores]
        count, ensemble = len(self.perplexities), (self.metrics.ensemble or {}).get(score)
        if len(values) < count:
            return {}
        models = f"{count} seed{'s' if count > 1 else ''}"
        return {
            "mean": f"{figure(fmean(values), (self.metrics.std or {}).get(score))} ({models})",
            "best": f"{figure(max(values))} (best of {models})",
            "ensemble": "" if ensemble is None else f"{figure(ensemble)} ({count} models)",
        }


class TableRecord(Record):
    """A table of the paper in ours: rows, a picture, or both."""

    kind: Literal["table"]
    table: str  # key of a table of the paper
    picture: str | None  # path from the repository's root
    rows: tuple[dict[str, str], ...] = ()  # of NAME.csv, values as they are in the file


class MeasuredSpeed(Section):
    """What benchmarks.table3 --json writes: rows of Table 3, and where they come from."""

    rows: Annotated[tuple[dict[str, str], ...], Field(min_length=1)]
    signatures: dict[str, str]
    test_set: str


Records = dict[str, RunRecord | TableRecord]
RECORD = Annotated[RunRecord | TableRecord, Field(discriminator="kind")]


def read_records(folder: Path) -> Records:
    """Read all records of a folder, by name; raise ValueError if one has faults, or rows have no record."""
    records = {path.stem: read_record(path) for path in sorted(folder.glob("*.json"))}
    for path in folder.glob("*.csv"):
        if not isinstance(records.get(path.stem), TableRecord):
            raise ValueError(f"{path} has no {path.stem}.json of kind table beside it; record it again.")
    return records


def read_record(path: Path) -> RunRecord | TableRecord:
    """Read a record with its rows; raise ValueError if it has faults, or nothing to show."""
    content, rows = read(path), path.with_suffix(".csv")
    if rows.is_file():
        content["rows"] = read_rows(rows)
    record: RunRecord | TableRecord = checked(RECORD, content, path)
    if isinstance(record, TableRecord) and not record.rows and record.picture is None:
        raise ValueError(f"{path} has neither a picture nor {rows.name} beside it; record it again.")
    return record


def read_rows(path: Path) -> list[dict[str, str]]:
    """Return rows as text; a sweep's have the columns of records, empty where an older file lacks them.

    Raises:
        ValueError: if the file lacks a column or a value, or a value is no number.
    """
    with path.open(encoding="utf-8", newline="") as stream:
        header, *lines = list(csv.reader(stream)) or [[]]
    wanted = header if "system" in header else COLUMNS
    if set(wanted) - {SPEED} - set(header):
        raise ValueError(f"{path}: found columns {', '.join(header)}; wanted {', '.join(wanted)}.")
    rows = []
    for number, values in enumerate(lines, start=2):
        if len(values) != len(header):
            raise ValueError(f"{path}, line {number}: wanted {len(header)} values, one per column.")
        found = dict(zip(header, values, strict=True))
        rows.append({column: found.get(column, "") for column in wanted})
        for column, value in list(rows[-1].items())[1:]:
            if not NUMBER.fullmatch(value):
                fault = f"found {value!r}; wanted a number or nothing"
                raise ValueError(f"{path}, line {number}, {column}: {fault}.")
    return rows
