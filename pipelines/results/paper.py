"""The paper's results, row by row, with what runs each (§5): experiments/records/paper.yaml."""

from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Field, TypeAdapter, model_validator

from convs2s.config.section import Section
from pipelines.results.reading import read_checked

Kind = Literal["runs", "sweep", "speed", "picture"]
Figure = Annotated[str, Field(pattern=r"^(\d[\d,]*(\.\d+)?)?$")]
Key = Annotated[str, Field(pattern=r"^[a-z0-9-]+$")]


class Score(Section):
    """A figure of a table."""

    name: str
    """As stage evaluate calls it, or a column of a sweep."""
    title: str
    """Head of the column."""


class Run(Section):
    """What fills a row: a recorded run of a preset."""

    preset: str
    of: Literal["mean", "best", "ensemble"]
    """Mean or best of the seeds, or their ensemble."""
    seeds: Annotated[int, Field(ge=1)]
    """Trainings that the paper's figure is of; an ensemble of fewer does not fill its row."""


class Row(Section):
    """A row of the paper."""

    label: str
    paper: list[Figure]
    """The paper's figure for each score of the table, as printed; empty where it gives none."""
    run: Run | None = None
    """What fills it, in a table of runs."""
    sweep: tuple[str, str] | None = None
    """Row and column of it in a sweep's table; null: the label, and no column."""
    ours: bool = True
    """Whether it is for us to run; false for the systems of others that the paper compares with."""

    @property
    def place(self) -> tuple[str, str]:
        """Row and column of it in a sweep's table; the latter empty if there are none."""
        return self.sweep or (self.label, "")


class Table(Section):
    """A table of the paper, or a part of one with its own test set."""

    key: Key
    """Names the table to `pipelines.results.record`."""
    title: str
    kind: Kind
    scores: list[Score]
    command: str
    """What makes our figures; empty where each row's preset is the command."""
    preset: str | None
    """Of the paper's own experiment, for sweeps and pictures."""
    note: str
    rows: list[Row]

    @model_validator(mode="after")
    def _rows_fit(self) -> Self:
        for row in self.rows:
            if len(row.paper) != len(self.scores):
                raise ValueError(
                    f"row {row.label!r} has {len(row.paper)} figures; "
                    f"wanted {len(self.scores)}, one per score"
                )
            if (row.run is not None) != (row.ours and self.kind == "runs"):
                raise ValueError(
                    f"row {row.label!r}: wanted `run` in a table of runs, unless `ours: false`; else none"
                )
        return self

    def printed(self, place: tuple[str, str], score: str) -> str | None:
        """Return the figure that the paper prints for a score of a row of sweeps; None if it is of no row."""
        names = [one.name for one in self.scores]
        figures = [row.paper for row in self.rows if row.place == place and score in names]
        return figures[0][names.index(score)] if figures else None


class Other(Section):
    """A preset that is of no row of the paper."""

    preset: str
    label: str
    published: str
    """What others published with it; empty if nothing."""


class Paper(Section):
    """All of experiments/records/paper.yaml."""

    tables: list[Table]
    others: list[Other]

    def presets(self) -> set[str]:
        """Return the presets that stand on the page."""
        runs = {row.run.preset for table in self.tables for row in table.rows if row.run}
        tables = {table.preset for table in self.tables if table.preset}
        return runs | tables | {other.preset for other in self.others}

    def table(self, key: str) -> Table:
        """Return a table by its key.

        Raises:
            KeyError: if there is none; the message lists those there are.
        """
        for table in self.tables:
            if table.key == key:
                return table
        raise KeyError(f"{key} is no table; wanted one of: {', '.join(table.key for table in self.tables)}")


def read_paper(path: Path) -> Paper:
    """Read experiments/records/paper.yaml.

    Raises:
        FileNotFoundError: if it is not there.
        ValueError: if it is not valid, with file and key.
    """
    return read_checked(TypeAdapter(Paper), path)
