"""The paper's tables (§5), experiments/paper.yaml and tables/*.yaml: its figures, and how to run ours."""

from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from convs2s.config.model import ModelParams
from convs2s.config.section import Positive, Section
from pipelines.results.commands import command
from pipelines.results.reading import checked, existing, read

FOLDER = Path(__file__).parents[2] / "experiments" / "tables"
MEASURES = {"perplexity": "PPL", "bleu": "BLEU"}
"""Scores of sweeps, and their column titles in the paper."""
FIGURES = ("perplexity", "bleu", "bleu_tokenized", "rouge1", "rouge2", "rougeL", "seconds")
SIDES = ("encoder", "decoder")
SPEED = "target_tokens_per_second"
Published = Annotated[str, Field(pattern=r"^\d[\d,]*(\.\d+)?$")]
"""A figure with the paper's digits, in quotes: a YAML number would lose trailing zeros."""


class RowRun(Section):
    """The recorded runs that fill a row: those of a preset."""

    preset: str
    of: Literal["mean", "best", "ensemble", "all"]  # of the seeds; all: mean, and ensemble if there is one
    seeds: Positive  # number behind the paper's figure; a smaller ensemble does not fill the row

    @property
    def command(self) -> str:
        """The command that runs it, from the repository's root."""
        wanted: dict[str, Any] = {"train.seeds": list(range(1, self.seeds + 1))}
        if self.of == "ensemble":
            wanted["evaluate.ensembles"] = ["all"]
        return command(self.preset, wanted, "repro")


class LayerStack(Section):
    """Equal layers, as wide as the first layer in params.yaml."""

    layers: Positive
    kernel: Positive


class Row(Section):
    """A row of a table, or one cell of a grid; in a sweep, null keeps the setting in params.yaml."""

    row: Annotated[str, Field(min_length=1)]  # its name in the paper
    column: Annotated[str, Field(pattern=r"^\d+$")] | None = None  # in a grid
    run: RowRun | None = None  # what fills it; null: another system, or a row of a sweep
    encoder: LayerStack | None = None
    decoder: LayerStack | None = None
    attention: list[Positive] | None = None  # decoder layers with it, from 1; with `decoder`; null: all
    source_positions: bool | None = None
    target_positions: bool | None = None
    set: dict[str, Any] = Field(default={})  # further values of params.yaml, by dotted name
    perplexity: Published | None = None
    bleu: Published | None = None
    bleu_tokenized: Published | None = None
    rouge1: Published | None = None
    rouge2: Published | None = None
    rougeL: Published | None = None  # as stage evaluate names it
    seconds: Published | None = None

    @property
    def place(self) -> tuple[str, str]:
        """Row and column; the latter is empty in a table without columns."""
        return self.row, self.column or ""

    def overrides(self, base: ModelParams) -> dict[str, Any]:
        """Return the values of params.yaml that the row changes, by dotted name; `base` is its `model`."""
        changed: dict[str, Any] = {}
        for side in SIDES:
            if stack := getattr(self, side):
                changed[f"model.{side}_widths"] = getattr(base, f"{side}_widths")[:1] * stack.layers
                changed[f"model.{side}_kernels"] = [stack.kernel] * stack.layers
        if self.decoder is not None:
            layers = range(1, self.decoder.layers + 1)
            changed["model.attention"] = [self.attention is None or i in self.attention for i in layers]
        positions = {f"model.{key}": getattr(self, key) for key in ("source_positions", "target_positions")}
        return changed | {key: value for key, value in positions.items() if value is not None} | self.set


class Table(Section):
    """A table of the paper, or the part of one with its own test set; or a sweep of your own."""

    key: Annotated[str, Field(pattern=r"^[A-Za-z0-9-]+$")]  # for a sweep, the name of its file
    title: str
    is_sweep: bool = False
    scores: dict[str, str] = Field(default={})  # titles of their columns by their names in the records
    section: str = ""
    preset: str | None = None  # of the paper's own experiment, for sweeps
    command: str = ""  # produces our figures; in a table of runs, each row's preset determines it
    note: str = ""  # the paper's remarks on its figures
    whose: str = "paper"  # source of the figures, in their column titles
    row: str = ""  # what rows differ in
    column: str | None = None  # what columns differ in; null: the table is not a grid
    rows: Annotated[list[Row], Field(min_length=1)]

    @model_validator(mode="after")
    def _is_a_table(self) -> Self:
        places, known = [one.place for one in self.rows], self.scores or MEASURES
        for one in self.rows:
            layers, last = one.decoder.layers if one.decoder else 0, max(one.attention or [0])
            strange = ", ".join(name for name in FIGURES if getattr(one, name) and name not in known)
            faults = {
                f" has column {one.column!r}, the table {self.column!r}": bool(one.column)
                != bool(self.column),
                f", column {one.column!r} occurs twice; wanted once": places.count(one.place) > 1,
                " has attention but no decoder; wanted both": one.attention is not None and not layers,
                f": attention in layer {last} of {layers}": last > layers,
                f" has {strange}; wanted {', '.join(known)}": bool(strange),
            }
            for fault in (text for text, found in faults.items() if found):
                raise ValueError(f"row {one.row!r}{fault}")
        return self

    def published(self, row: Row) -> dict[str, str]:
        """Return the paper's figures of a row by score; empty where it gives none."""
        return {score: getattr(row, score, None) or "" for score in self.scores}


Paper = dict[str, Table]


def table_names(folder: Path = FOLDER) -> list[str]:
    """Return the names of the sweeps in a folder."""
    return sorted(path.stem for path in folder.glob("*.yaml"))


def read_table(name: str, folder: Path = FOLDER) -> Table:
    """Read the sweep NAME.yaml of a folder; raise FileNotFoundError or, with all faults, ValueError."""
    known = ", ".join(table_names(folder))
    path = existing(folder / f"{name}.yaml", f"wanted the name of a file there: {known}")
    content = {"key": name, "is_sweep": True} | checked(dict[str, Any], read(path), path)
    table: Table = checked(Table, content, path)
    scores = {key: title for key, title in MEASURES.items() if any(getattr(r, key) for r in table.rows)}
    run = {"command": command(table.preset, {}, f"sweep TABLE={name}")} if table.preset else {}
    return table.model_copy(update={"scores": scores, **run})


def read_paper(experiments: Path) -> Paper:
    """Return all tables by key; an entry of paper.yaml that is only a name is a sweep, tables/NAME.yaml."""
    path = experiments / "paper.yaml"
    content = checked(list[dict[str, Any] | str], read(path), path)
    tables: list[Table] = checked(list[Table], [one for one in content if isinstance(one, dict)], path)
    own = {table.key: table for table in tables}
    keys = [one["key"] if isinstance(one, dict) else one for one in content]
    return {key: own.get(key) or read_table(key, experiments / "tables") for key in keys}


def presets(paper: Paper) -> set[str]:
    """Return the presets that appear on the page."""
    runs = {row.run.preset for table in paper.values() for row in table.rows if row.run}
    return runs | {table.preset for table in paper.values() if table.preset}
