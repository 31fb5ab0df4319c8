"""The paper's tables (§5), experiments/paper.yaml and tables/*.yaml: its figures, and what runs ours."""

from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from convs2s.config.model import ModelParams
from convs2s.config.params import Params
from convs2s.config.section import Positive, Section
from convs2s.model.receptive_field import receptive_field
from pipelines.results.reading import checked, existing, read

FOLDER = Path(__file__).parents[2] / "experiments" / "tables"
MEASURES = {"perplexity": "PPL", "bleu": "BLEU"}
"""Scores of sweeps, and how the paper heads their columns."""
SPEED = "target_tokens_per_second"
Published = Annotated[str, Field(pattern=r"^\d[\d,]*(\.\d+)?$")]
"""A figure with the digits that the paper prints: in quotes, as a YAML number loses its trailing zero."""


class RowRun(Section):
    """The recorded runs that fill a row: those of a preset."""

    preset: str
    of: Literal["mean", "best", "ensemble", "all"]  # of the seeds; all: mean, and ensemble if there is one
    seeds: Positive  # behind the paper's figure; an ensemble of fewer does not fill its row

    @property
    def command(self) -> str:
        """What runs it, from the repository's root."""
        seeds = ",".join(map(str, range(1, self.seeds + 1)))
        run = "dvc repro" if self.seeds == 1 else f"dvc exp run -S 'train.seeds=[{seeds}]'"
        return f"make preset NAME={self.preset} && {run}"


class LayerStack(Section):
    """Equal layers, as wide as the first layer in params.yaml."""

    layers: Positive
    kernel: Positive


class Figures(Section):
    """What the paper prints in a row, by score."""

    perplexity: Published | None = None
    bleu: Published | None = None
    bleu_tokenized: Published | None = None
    rouge1: Published | None = None
    rouge2: Published | None = None
    rougeL: Published | None = None  # as stage evaluate names it
    seconds: Published | None = None


class Row(Figures):
    """A row of a table, or one cell of a grid; in a sweep, null leaves a setting as params.yaml has it."""

    row: Annotated[str, Field(min_length=1)]  # its name in the paper
    column: Annotated[str, Field(pattern=r"^\d+$")] | None = None  # in a grid
    ours: bool = True  # false for systems of others, which the paper compares with
    run: RowRun | None = None  # what fills it, in a table of runs
    encoder: LayerStack | None = None
    decoder: LayerStack | None = None
    attention: list[Positive] | None = None  # decoder layers that attend, from 1; with `decoder`; null: all
    source_positions: bool | None = None
    target_positions: bool | None = None

    @property
    def place(self) -> tuple[str, str]:
        """Row and column; the latter is empty in a table without columns."""
        return self.row, self.column or ""

    def overrides(self, base: ModelParams) -> dict[str, Any]:
        """Return the values of params.yaml that the row changes, by dotted name; `base` is its `model`."""
        changed: dict[str, Any] = {}
        for side, stack in (("encoder", self.encoder), ("decoder", self.decoder)):
            if stack is not None:
                changed[f"model.{side}_widths"] = getattr(base, f"{side}_widths")[:1] * stack.layers
                changed[f"model.{side}_kernels"] = [stack.kernel] * stack.layers
        if self.decoder is not None:
            layers = range(1, self.decoder.layers + 1)
            changed["model.attention"] = [self.attention is None or i in self.attention for i in layers]
        positions = {f"model.{key}": getattr(self, key) for key in ("source_positions", "target_positions")}
        return changed | {key: value for key, value in positions.items() if value is not None}

    def circumstances(self, base: Params) -> dict[str, Any]:
        """Return the corpus, and the receptive fields of encoder and decoder in words (§5.4).

        Five decoder layers of kernel 5 see 21 words; the paper's text says 25 (T25).
        """
        model = {f"model.{key}": value for key, value in base.model} | self.overrides(base.model)
        sides = ("encoder", "decoder")
        fields = {f"{side}_context": receptive_field(model[f"model.{side}_kernels"]) for side in sides}
        return fields | {"corpus": base.package.name}


class Table(Section):
    """A table of the paper, or the part of one that has its own test set; or a sweep of your own."""

    key: Annotated[str, Field(pattern=r"^[A-Za-z0-9-]+$")]  # for `pipelines.results.record --table`
    title: str
    kind: Literal["runs", "sweep", "speed", "picture"]
    scores: dict[str, str] = Field(default={})  # titles of their columns by their names in the records
    section: str = ""
    preset: str | None = None  # of the paper's own experiment, for sweeps and speed
    command: str = ""  # makes our figures; in a table of runs the row's preset gives the command
    note: str = ""  # what the paper says beside its figures
    whose: str = "paper"  # the figures are, in the headings of their columns
    row: str = ""  # what rows of a sweep differ in
    column: str | None = None  # what columns differ in; null: the table is no grid
    label: str = "{row}"  # of a row or cell in docs/results.md: a format of `row` and `column`
    rows: Annotated[list[Row], Field(min_length=1)]

    @model_validator(mode="after")
    def _is_a_table(self) -> Self:
        places = [one.place for one in self.rows]
        for one in self.rows:
            row, last = f"row {one.row!r}", max(one.attention or [0])
            if (one.column is None) != (self.column is None):
                raise ValueError(f"{row} has column {one.column!r}, the table {self.column!r}")
            if places.count(one.place) > 1:
                raise ValueError(f"{row}, column {one.column!r} occurs twice; wanted once")
            if one.attention is not None and one.decoder is None:
                raise ValueError(f"{row} has attention but no decoder; wanted both")
            if one.decoder and last > one.decoder.layers:
                raise ValueError(f"{row}: attention in layer {last} of {one.decoder.layers}")
            if (one.run is not None) != (one.ours and self.kind == "runs"):
                raise ValueError(f"{row}: wanted `run` in a table of runs, unless `ours: false`")
            scores = set(Figures.model_fields) & one.model_fields_set - set(self.scores or MEASURES)
            if scores:
                raise ValueError(
                    f"{row} has {', '.join(scores)}; wanted {', '.join(self.scores or MEASURES)}"
                )
        return self

    def published(self, row: Row) -> dict[str, str]:
        """Return the paper's figures of a row by score; empty where it gives none."""
        return {score: getattr(row, score, None) or "" for score in self.scores}


Paper = dict[str, Table]


def read_table(name: str, folder: Path = FOLDER) -> Table:
    """Read the sweep NAME.yaml of a folder; raise FileNotFoundError or, with all faults, ValueError."""
    known = ", ".join(sorted(path.stem for path in folder.glob("*.yaml")))
    path = existing(folder / f"{name}.yaml", f"wanted the name of a file there: {known}")
    content = {"key": name, "kind": "sweep"} | checked(dict[str, Any], read(path), path)
    table: Table = checked(Table, content, path)
    scores = {key: title for key, title in MEASURES.items() if any(getattr(r, key) for r in table.rows)}
    command = f"make preset NAME={table.preset} && make sweep TABLE={name}"
    return table.model_copy(update={"scores": scores, "command": command})


def read_paper(experiments: Path) -> Paper:
    """Return all tables by key; an entry of paper.yaml that is only a name is a sweep, tables/NAME.yaml.

    Raises:
        FileNotFoundError: if a file is missing.
        ValueError: if one has faults; the message names file and key.
    """
    path = experiments / "paper.yaml"
    content = checked(list[dict[str, Any] | str], read(path), path)
    tables: list[Table] = checked(list[Table], [one for one in content if isinstance(one, dict)], path)
    own = {table.key: table for table in tables}
    keys = [one["key"] if isinstance(one, dict) else one for one in content]
    return {key: own.get(key) or read_table(key, experiments / "tables") for key in keys}


def presets(paper: Paper) -> set[str]:
    """Return the presets that have a place on the page."""
    runs = {row.run.preset for table in paper.values() for row in table.rows if row.run}
    return runs | {table.preset for table in paper.values() if table.preset}
