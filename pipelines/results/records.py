"""Recorded results: experiments/records/NAME.json."""

from pathlib import Path
from statistics import fmean
from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from convs2s.config.section import Section
from convs2s.text.counted import counted
from pipelines.results.commands import changes, command
from pipelines.results.costs import TrainingCost
from pipelines.results.markdown import figure
from pipelines.results.reading import checked, read

Scores = dict[str, float]


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
    params: dict[str, Any]  # values of params.yaml by dotted name, without those of machines
    commit: Annotated[str, Field(pattern=r"^[0-9a-f]{40}$")]  # of the code that produced the result
    date: Annotated[str, Field(pattern=r"^\d{4}-\d\d-\d\d$")]  # of recording
    cost: TrainingCost | None  # null if unknown
    signatures: dict[str, str]  # how each score was computed, by its name
    test_set: Annotated[str, Field(min_length=1)]  # name, lines and hash

    @property
    def changes(self) -> dict[str, Any]:
        """The parameters that differ from the preset, except seeds and ensembles, shown with the scores."""
        found = changes(self.preset, self.params)
        return {k: v for k, v in found.items() if k not in {"train.seeds", "evaluate.ensembles"}}

    @property
    def command(self) -> str:
        """The command that reproduces this result."""
        target = f"sweep TABLE={self.table}" if isinstance(self, SweepRecord) else "repro"
        return command(self.preset, self.params, target)


class RunRecord(Record):
    """A run of the whole pipeline."""

    kind: Literal["run"]
    metrics: SeedMetrics
    perplexities: Scores  # best validation perplexity of each seed

    @model_validator(mode="after")
    def _seeds_agree(self) -> Self:
        known = [set(self.perplexities), set(self.metrics.seeds), set(map(str, self.params["train.seeds"]))]
        if any(one != known[0] for one in known):
            found = [", ".join(sorted(one)) for one in known]
            raise ValueError("perplexities are of seeds {}, metrics of {}, params of {}".format(*found))
        return self

    def scores(self) -> dict[str, Scores]:
        """Return all scores of each seed, `perplexity` first."""
        return {seed: {"perplexity": self.perplexities[seed], **s} for seed, s in self.metrics.seeds.items()}

    def cell(self, score: str, of: str) -> str:
        """Return mean, best or ensemble, with the number of models; empty if one lacks the score."""
        values = [scores[score] for scores in self.scores().values() if score in scores]
        count, deviation = len(self.perplexities), (self.metrics.std or {}).get(score)
        if len(values) < count:
            return ""
        if of == "ensemble":
            found = figure((self.metrics.ensemble or {}).get(score))
            return found and f"{found} ({counted(count, 'model')})"
        seeds = counted(count, "seed")
        if of == "best":
            return f"{figure(max(values))} (best of {seeds})"
        return f"{figure(fmean(values), deviation)} ({seeds})"


class SweepRow(Section):
    """Our results for a row of a table of the paper; null if not measured."""

    row: str
    column: str
    perplexity: float | None
    perplexity_std: float | None
    bleu: float | None
    bleu_std: float | None
    seeds: int
    target_tokens_per_second: float | None


class SweepRecord(Record):
    """A sweep over a table of the paper; its picture is docs/pictures/NAME.png."""

    kind: Literal["sweep"]
    table: str  # key of the table
    rows: Annotated[tuple[SweepRow, ...], Field(min_length=1)]


Records = dict[str, RunRecord | SweepRecord]
RECORD = Annotated[RunRecord | SweepRecord, Field(discriminator="kind")]


def read_records(folder: Path) -> Records:
    """Read all records of a folder, by name; raise ValueError if one is invalid."""
    paths = sorted(folder.glob("*.json"), key=lambda path: path.stem)  # as `record` sorts them for the page
    return {path.stem: checked(RECORD, read(path), path) for path in paths}
