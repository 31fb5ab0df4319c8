"""The paper's ablation tables (§5.4 to §5.6): rows as parameters, and ours beside the published figures."""

import math
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Self

import pandas as pd
from pydantic import Field, ValidationError, model_validator
from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from convs2s.config import ModelParams, Positive, Section

FOLDER = Path(__file__).parent.parent / "sweeps"
KEY = ["row", "column"]
MEASURES = {"perplexity": "validation perplexity", "bleu": "BLEU"}


class Layers(Section):
    """A stack of equal layers, as wide as the first one of the parameters that a sweep begins with."""

    layers: Positive
    kernel: Positive


class Row(Section):
    """A row of a table, or one cell of a table that has columns."""

    row: Annotated[str, Field(min_length=1)]
    """What the paper calls it."""
    column: str | None = None
    """Likewise; a number."""
    encoder: Layers | None = None
    """None: as params.yaml has it; so with all that follows."""
    decoder: Layers | None = None
    attention: list[Positive] | None = None
    """Decoder layers that attend, counted from 1; None with `decoder`: all."""
    source_positions: bool | None = None
    target_positions: bool | None = None
    perplexity: float | None = None
    """Published; None: not told."""
    bleu: float | None = None
    """Likewise."""

    def overrides(self, base: ModelParams) -> dict[str, Any]:
        """Return what the row changes in params.yaml, by dotted names.

        Args:
            base: the section `model` that it is changed from.
        """
        changed: dict[str, Any] = {}
        for side, stack in (("encoder", self.encoder), ("decoder", self.decoder)):
            if stack is not None:
                width = getattr(base, f"{side}_widths")[0]
                changed[f"model.{side}_widths"] = [width] * stack.layers
                changed[f"model.{side}_kernels"] = [stack.kernel] * stack.layers
        if self.decoder is not None or self.attention is not None:
            count = self.decoder.layers if self.decoder else len(base.decoder_widths)
            attend = range(1, count + 1) if self.attention is None else self.attention
            changed["model.attention"] = [layer in attend for layer in range(1, count + 1)]
        for name in ("source_positions", "target_positions"):
            if getattr(self, name) is not None:
                changed[f"model.{name}"] = getattr(self, name)
        return changed


class Ablation(Section):
    """A table of the paper."""

    title: str
    section: str
    row: str
    """What rows differ in."""
    column: str | None
    """What columns differ in; null: a table of rows."""
    rows: Annotated[list[Row], Field(min_length=1)]

    @model_validator(mode="after")
    def _is_a_table(self) -> Self:
        cells = [(one.row, one.column) for one in self.rows]
        for row, column in cells:
            if (column is None) != (self.column is None):
                raise ValueError(f"row {row!r} has column {column!r}, but the table has {self.column!r}")
            if cells.count((row, column)) > 1:
                raise ValueError(f"row {row!r}, column {column!r} stands twice; wanted once")
        for one in self.rows:
            if one.attention and one.decoder and max(one.attention) > one.decoder.layers:
                raise ValueError(
                    f"row {one.row!r}: attention in layer {max(one.attention)} of {one.decoder.layers}"
                )
        return self


def read_ablation(name: str, folder: Path = FOLDER) -> Ablation:
    """Read a table from sweeps/NAME.yaml.

    Raises:
        FileNotFoundError: if there is none of that name.
        ValueError: if the file is not YAML, or has faults, each of which the message tells.
    """
    path = folder / f"{name}.yaml"
    if not path.is_file():
        known = ", ".join(sorted(path.stem for path in folder.glob("*.yaml")))
        raise FileNotFoundError(f"{path} does not exist; wanted the name of a file there: {known}")
    try:
        return Ablation.model_validate(YAML(typ="safe", pure=True).load(path.read_text(encoding="utf-8")))
    except YAMLError as error:
        raise ValueError(f"{path} is not valid YAML: {error}") from error
    except ValidationError as error:
        faults = [
            f"  {'.'.join(map(str, fault['loc'])) or 'table'}: {fault['msg']}, found {fault['input']!r}"
            for fault in error.errors(include_url=False)
        ]
        raise ValueError("\n".join([f"{path} has {len(faults)} fault(s):", *faults])) from None


def compare(ablation: Ablation, experiments: pd.DataFrame) -> pd.DataFrame:
    """Return a row per row of the paper's table, with its figures and ours.

    Args:
        experiments: a row each, with `row`, `column`, and metrics as the flow `sweep` names them; those of
            rows that failed are missing.

    Returns:
        Columns row, column, paper_perplexity, paper_bleu, then ours: perplexity, perplexity_std, bleu,
        bleu_std, over seeds, and how many these are. BLEU is that of tokenized text before unknown words are
        replaced, as the paper's (§5.4). NaN is what there is not.
    """
    records = experiments.to_dict(orient="records")
    found = {(str(one["row"]), label(one.get("column"))): ours(one) for one in records}
    rows = []
    for row in ablation.rows:
        published = {"paper_perplexity": row.perplexity, "paper_bleu": row.bleu}
        paper: dict[str, Any] = {"row": row.row, "column": row.column, **published}
        rows.append(paper | found.get((row.row, label(row.column)), {"seeds": 0}))
    names = [f"{name}{ending}" for name in MEASURES for ending in ("", "_std")]
    columns = [*KEY, *(f"paper_{name}" for name in MEASURES), *names, "seeds"]
    table = pd.DataFrame(rows).reindex(columns=columns)
    numbers = columns[len(KEY) : -1]
    table[numbers] = table[numbers].astype(float)
    return table


def label(column: Any) -> str:
    """Return a column's name: a CSV makes 5, 5.0 or nothing of it."""
    if column is None or (isinstance(column, float) and math.isnan(column)):
        return ""
    return str(int(column)) if isinstance(column, float) else str(column)


def ours(metrics: Mapping[Any, Any]) -> dict[str, float]:
    """Return the figures of one experiment."""
    values = [
        float(value)
        for name, value in metrics.items()
        if re.fullmatch(r"\d+\.validation_perplexity", str(name)) and not math.isnan(float(value))
    ]
    perplexities = pd.Series(values, dtype=float)
    kept = "without_replacement."
    prefix = kept if not math.isnan(float(metrics.get(f"{kept}mean.bleu_tokenized", math.nan))) else ""
    return {
        "perplexity": perplexities.mean(),
        "perplexity_std": perplexities.std(ddof=1),
        "bleu": float(metrics.get(f"{prefix}mean.bleu_tokenized", math.nan)),
        "bleu_std": float(metrics.get(f"{prefix}std.bleu_tokenized", math.nan)),
        "seeds": len(values),
    }
