"""The paper's ablations (§5.4 to §5.6), experiments/tables/*.yaml: rows as changes of params.yaml."""

from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import BeforeValidator, Field, model_validator

from convs2s.config.model import ModelParams
from convs2s.config.params import Params
from convs2s.config.section import Positive, Section
from convs2s.model.receptive_field import receptive_field
from pipelines.results.reading import checked, existing, read

FOLDER = Path(__file__).parents[2] / "experiments" / "tables"
MEASURES = {"perplexity": "PPL", "bleu": "BLEU"}
"""Scores of these tables, and how the paper heads their columns."""
SPEED = "target_tokens_per_second"


def quoted(figure: object) -> object:
    """Refuse a number: YAML has already dropped its trailing zero."""
    if isinstance(figure, int | float):
        raise ValueError(f'wanted it in quotes, as printed: "{figure}"')
    return figure


Published = Annotated[str, Field(pattern=r"^\d+(\.\d+)?$"), BeforeValidator(quoted)]
"""A figure with the digits that the paper prints."""


class LayerStack(Section):
    """Equal layers, as wide as the first layer in params.yaml."""

    layers: Positive
    kernel: Positive


class AblationRow(Section):
    """A row of a table, or one cell of a grid; null leaves a setting as params.yaml has it."""

    row: Annotated[str, Field(min_length=1)]  # its name in the paper
    column: str | None = None  # in a grid, a number
    encoder: LayerStack | None = None
    decoder: LayerStack | None = None
    attention: list[Positive] | None = None  # decoder layers that attend, from 1; with `decoder`; null: all
    source_positions: bool | None = None
    target_positions: bool | None = None
    perplexity: Published | None = None
    bleu: Published | None = None

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
        for name in ("source_positions", "target_positions"):
            if getattr(self, name) is not None:
                changed[f"model.{name}"] = getattr(self, name)
        return changed

    def circumstances(self, base: Params) -> dict[str, Any]:
        """Return the corpus, and the receptive fields of encoder and decoder in words (§5.4).

        Five decoder layers of kernel 5 see 21 words; the paper's text says 25 (T25).
        """
        model = {f"model.{key}": value for key, value in base.model} | self.overrides(base.model)
        encoder, decoder = (
            receptive_field(model[f"model.{side}_kernels"]) for side in ("encoder", "decoder")
        )
        return {"encoder_context": encoder, "decoder_context": decoder, "corpus": base.package.name}


class Ablation(Section):
    """A table of the paper, or one of your own."""

    title: str
    section: str
    preset: str | None = None  # of the paper's own experiment
    row: str  # what rows differ in
    column: str | None  # what columns differ in; null: the table is no grid
    label: str = "{row}"  # of a cell of a grid in docs/results.md: a format of `row` and `column`
    note: str = ""  # what the paper says beside its figures
    rows: Annotated[list[AblationRow], Field(min_length=1)]

    @model_validator(mode="after")
    def _is_a_table(self) -> Self:
        places = [one.place for one in self.rows]
        for one in self.rows:
            row, last = f"row {one.row!r}", max(one.attention or [0])
            if (one.column is None) != (self.column is None):
                raise ValueError(f"{row} has column {one.column!r}, the table {self.column!r}")
            if one.column is not None and not one.column.isdigit():
                raise ValueError(f"{row} has column {one.column!r}; wanted a number")
            if places.count(one.place) > 1:
                raise ValueError(f"{row}, column {one.column!r} occurs twice; wanted once")
            if one.attention is not None and one.decoder is None:
                raise ValueError(f"{row} has attention but no decoder; wanted both")
            if one.decoder and last > one.decoder.layers:
                raise ValueError(f"{row}: attention in layer {last} of {one.decoder.layers}")
        return self


def read_ablation(name: str, folder: Path = FOLDER) -> Ablation:
    """Read the table NAME.yaml of a folder.

    Raises:
        FileNotFoundError: if there is none of that name.
        ValueError: if the file has faults; the message lists them.
    """
    known = ", ".join(sorted(path.stem for path in folder.glob("*.yaml")))
    path = existing(folder / f"{name}.yaml", f"wanted the name of a file there: {known}")
    return checked(Ablation, read(path), path)
