"""Recorded results: experiments/records/NAME.json."""

import re
from pathlib import Path
from statistics import fmean
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from convs2s.config.section import Section
from pipelines.results.costs import TrainingCost
from pipelines.results.markdown import figure
from pipelines.results.paper import SPEED
from pipelines.results.reading import checked, read

Scores = dict[str, float]
SWEEP = (
    "row", "column", "paper_perplexity", "paper_bleu", "perplexity", "perplexity_std", "bleu", "bleu_std",
    "seeds", SPEED,
)  # fmt: skip
"""Columns of the rows of a sweep."""
NUMBER = re.compile(r"([-+]?\d+(\.\d*)?(e[-+]?\d+)?)?")


def complete(row: dict[str, str]) -> dict[str, str]:
    """Return a row of a table; raise ValueError if it lacks a column, or a value is no number."""
    if "system" not in row and set(row) != set(SWEEP):
        raise ValueError(f"found columns {', '.join(row)}; wanted {', '.join(SWEEP)}")
    for column, value in row.items():
        if column not in {"row", "system"} and not NUMBER.fullmatch(value):
            raise ValueError(f"{column}: found {value!r}; wanted a number or nothing")
    return row


TableRow = Annotated[dict[str, str], AfterValidator(complete)]
"""Its name, then numbers as they were written, or nothing: of a sweep, or of benchmarks.table3."""


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
            ours, theirs = (", ".join(one) for one in (self.perplexities, self.metrics.seeds))
            raise ValueError(f"perplexities are of seeds {ours}, metrics of {theirs}; wanted the same seeds")
        return self

    def scores(self) -> dict[str, Scores]:
        """Return all scores of each seed, `perplexity` first."""
        return {seed: {"perplexity": self.perplexities[seed], **s} for seed, s in self.metrics.seeds.items()}

    def cell(self, score: str, of: str) -> str:
        """Return mean, best or ensemble, with the number of models; nothing if one lacks the score."""
        values = [scores[score] for scores in self.scores().values() if score in scores]
        count, deviation = len(self.perplexities), (self.metrics.std or {}).get(score)
        seeds = f"{count} seed{'s' if count > 1 else ''}"
        if len(values) < count:
            return ""
        if of == "ensemble":
            found = figure((self.metrics.ensemble or {}).get(score))
            return found and f"{found} ({count} models)"
        if of == "best":
            return f"{figure(max(values))} (best of {seeds})"
        return f"{figure(fmean(values), deviation)} ({seeds})"


class TableRecord(Record):
    """A table of the paper in ours: rows, a picture, or both."""

    kind: Literal["table"]
    table: str  # key of a table of the paper
    picture: str | None  # path from the repository's root
    rows: tuple[TableRow, ...] = ()

    @model_validator(mode="after")
    def _shows_something(self) -> Self:
        if not self.rows and self.picture is None:
            raise ValueError("found neither rows nor a picture; record it again")
        return self


class MeasuredSpeed(Section):
    """What benchmarks.table3 --json writes: rows of Table 3, and where they come from."""

    rows: Annotated[tuple[TableRow, ...], Field(min_length=1)]
    signatures: dict[str, str]
    test_set: str


Records = dict[str, RunRecord | TableRecord]
RECORD = Annotated[RunRecord | TableRecord, Field(discriminator="kind")]


def read_records(folder: Path) -> Records:
    """Read all records of a folder, by name; raise ValueError if one has faults."""
    return {path.stem: checked(RECORD, read(path), path) for path in sorted(folder.glob("*.json"))}
