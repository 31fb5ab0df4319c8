"""The paper's results, row by row, and what runs each of ours (§5): experiments/paper.yaml and tables/."""

from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import Field, TypeAdapter, model_validator

from convs2s.config.section import Section
from pipelines.results.ablation import MEASURES, read_ablation
from pipelines.results.reading import checked, read

Kind = Literal["runs", "sweep", "speed", "picture"]
Printed = Annotated[str, Field(pattern=r"^(\d[\d,]*(\.\d+)?)?$")]


class ScoreColumn(Section):
    """A score of a table: its name in the records, and the heading of its column."""

    name: str
    title: str


class RowRun(Section):
    """The recorded runs that fill a row: those of a preset."""

    preset: str
    of: Literal["mean", "best", "ensemble", "all"]  # of the seeds; all: mean, and ensemble if there is one
    seeds: Annotated[
        int, Field(ge=1)
    ]  # behind the paper's figure; an ensemble of fewer does not fill its row

    @property
    def command(self) -> str:
        """What runs it, from the repository's root."""
        seeds = ",".join(map(str, range(1, self.seeds + 1)))
        run = "dvc repro" if self.seeds == 1 else f"dvc exp run -S 'train.seeds=[{seeds}]'"
        return f"make preset NAME={self.preset} && {run}"

    def filled_by(self, models: int, ensemble: bool) -> list[str]:
        """Return which results fill the row, of a run of so many models, with or without their ensemble."""
        if self.of == "all":
            return ["mean", "ensemble"] if ensemble else ["mean"]
        return [self.of] if self.of != "ensemble" or (ensemble and models == self.seeds) else []


class PaperRow(Section):
    """A row of the paper."""

    label: str
    paper: tuple[Printed, ...] = ()  # a figure per score, as printed; empty where it gives none
    run: RowRun | None = None  # what fills it, in a table of runs
    place: tuple[str, str] | None = None  # its row and column in a sweep
    ours: bool = True  # false for systems of others, which the paper compares with


class PaperTable(Section):
    """A table of the paper, or the part of one that has its own test set."""

    key: Annotated[str, Field(pattern=r"^[a-z0-9-]+$")]  # for `pipelines.results.record --table`
    title: str
    kind: Kind
    scores: list[ScoreColumn]
    command: str = ""  # makes our figures; in a table of runs the row's preset gives the command
    preset: str | None = None  # of the paper's own experiment, for sweeps and speed
    note: str = ""
    whose: str = "paper"  # the figures are, in the headings of their columns
    rows: list[PaperRow]

    @model_validator(mode="after")
    def _rows_fit(self) -> Self:
        for row in self.rows:
            if len(row.paper) not in {0, len(self.scores)}:
                found = f"row {row.label!r} has {len(row.paper)} figures"
                raise ValueError(f"{found}; wanted {len(self.scores)}, one per score")
            if (row.run is not None) != (row.ours and self.kind == "runs"):
                raise ValueError(f"row {row.label!r}: wanted `run` in a table of runs, unless `ours: false`")
        return self

    def published(self, row: PaperRow) -> dict[str, str]:
        """Return the paper's figures of a row by score; empty where it gives none."""
        return dict(zip((s.name for s in self.scores), row.paper or [""] * len(self.scores), strict=True))


Paper = dict[str, PaperTable]
TABLES = TypeAdapter(Annotated[list[PaperTable], Field(min_length=1)])


def read_paper(experiments: Path) -> Paper:
    """Return the tables of paper.yaml by key; an entry that is only a name is a sweep, tables/NAME.yaml.

    Raises:
        FileNotFoundError: if a file is missing.
        ValueError: if one has faults; the message names file and key.
    """
    path = experiments / "paper.yaml"
    content = read(path)
    if isinstance(content, list):
        content = [sweep(one, experiments / "tables") if isinstance(one, str) else one for one in content]
    return {table.key: table for table in checked(TABLES, content, path)}


def sweep(name: str, folder: Path) -> dict[str, Any]:
    """Return an ablation as an entry of paper.yaml."""
    ablation = read_ablation(name, folder)
    scores = {key: title for key, title in MEASURES.items() if any(getattr(r, key) for r in ablation.rows)}
    rows = [
        {
            "label": ablation.label.format(row=row.row, column=row.column),
            "paper": [getattr(row, score) or "" for score in scores],
            "place": row.place,
        }
        for row in ablation.rows
    ]
    return {
        **{"key": name, "title": ablation.title, "kind": "sweep", "note": ablation.note, "rows": rows},
        "scores": [{"name": score, "title": title} for score, title in scores.items()],
        "command": f"make preset NAME={ablation.preset} && make sweep TABLE={name}",
        "preset": ablation.preset,
    }


def presets(paper: Paper) -> set[str]:
    """Return the presets that have a place on the page."""
    runs = {row.run.preset for table in paper.values() for row in table.rows if row.run}
    return runs | {table.preset for table in paper.values() if table.preset}
