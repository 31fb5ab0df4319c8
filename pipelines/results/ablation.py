"""The paper's ablation tables (§5.4 to §5.6): rows as parameters, and ours beside the published figures."""

import math
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Self

import pandas as pd
from pydantic import BeforeValidator, Field, ValidationError, model_validator
from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from convs2s.config.model import ModelParams
from convs2s.config.params import Params
from convs2s.config.section import Positive, Section
from convs2s.model.receptive_field import receptive_field

FOLDER = Path(__file__).parents[2] / "experiments" / "tables"
KEY = ["row", "column"]
MEASURES = {"perplexity": "validation perplexity", "bleu": "BLEU"}
SPEED = "target_tokens_per_second"
"""Column of the mean speed of a row's trainings."""
CIRCUMSTANCES = ["encoder_context", "decoder_context", "corpus", "commit", "test_set", "signature", "failed"]
"""What the flow notes of a row beside its settings and metrics."""


def in_quotes(figure: object) -> object:
    """Refuse a number, of which YAML would have dropped the last zero.

    Raises:
        ValueError: if it is one.
    """
    if isinstance(figure, int | float):
        raise ValueError(f'wanted it in quotes, as it is printed: "{figure}"')
    return figure


Published = Annotated[str, Field(pattern=r"^\d+(\.\d+)?$"), BeforeValidator(in_quotes)]
"""A figure with the digits that the paper gives."""


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
    """Decoder layers that attend, counted from 1, for a row with `decoder`; None: all."""
    source_positions: bool | None = None
    target_positions: bool | None = None
    perplexity: Published | None = None
    """None: not told."""
    bleu: Published | None = None
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
        if self.decoder is not None:
            layers = range(1, self.decoder.layers + 1)
            attend = layers if self.attention is None else self.attention
            changed["model.attention"] = [layer in attend for layer in layers]
        for name in ("source_positions", "target_positions"):
            if getattr(self, name) is not None:
                changed[f"model.{name}"] = getattr(self, name)
        return changed

    def circumstances(self, base: Params) -> dict[str, Any]:
        """Return what tells an experiment of this row apart from the paper's, beside its settings.

        That are the corpus, and how many words its encoder and decoder see (§5.4), computed: five decoder
        layers of kernel 5 see 21, where the paper's text says 25 (T25).
        """
        changed, found = self.overrides(base.model), {}
        for side in ("encoder", "decoder"):
            kernels = changed.get(f"model.{side}_kernels", getattr(base.model, f"{side}_kernels"))
            found[f"{side}_context"] = receptive_field(kernels)
        return {**found, "corpus": base.package.name}


class Ablation(Section):
    """A table of the paper."""

    title: str
    section: str
    row: str
    """What rows differ in."""
    column: str | None
    """What columns differ in; null: a table of rows."""
    note: str | None = None
    """What the paper tells beside its figures."""
    rows: Annotated[list[Row], Field(min_length=1)]

    @model_validator(mode="after")
    def _is_a_table(self) -> Self:
        cells = [(one.row, one.column) for one in self.rows]
        for row, column in cells:
            if (column is None) != (self.column is None):
                raise ValueError(f"row {row!r} has column {column!r}, but the table has {self.column!r}")
            if column is not None and not column.isdigit():
                raise ValueError(f"row {row!r} has column {column!r}; wanted a number")
            if cells.count((row, column)) > 1:
                raise ValueError(f"row {row!r}, column {column!r} stands twice; wanted once")
        for one in self.rows:
            if one.attention is not None and one.decoder is None:
                raise ValueError(f"row {one.row!r} has attention but no decoder; wanted both")
            if one.attention and one.decoder and max(one.attention) > one.decoder.layers:
                raise ValueError(
                    f"row {one.row!r}: attention in layer {max(one.attention)} of {one.decoder.layers}"
                )
        return self


def read_ablation(name: str, folder: Path = FOLDER) -> Ablation:
    """Read a table from experiments/tables/NAME.yaml.

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
        experiments: a row each, with `row`, `column`, circumstances, and metrics as the flow `sweep` names
            them; those of rows that failed are missing, and `failed` says why.

    Returns:
        Columns row, column, paper_perplexity, paper_bleu, as text, then ours: perplexity, perplexity_std,
        bleu, bleu_std, over seeds, how many these are, and target_tokens_per_second of their training; then
        the circumstances. BLEU is that of tokenized text before unknown words are replaced, as the paper's
        (§5.4). NaN or None is what there is not.

    Raises:
        ValueError: if there are experiments of rows that the table does not have.
    """
    records = experiments.to_dict(orient="records")
    found = {(str(one["row"]), label(one.get("column"))): ours(one) for one in records}
    known = [(row.row, label(row.column)) for row in ablation.rows]
    if strange := [", ".join(filter(None, key)) for key in found if key not in known]:
        wanted = [", ".join(filter(None, key)) for key in known]
        raise ValueError(
            f"the experiments have the row(s) {'; '.join(map(repr, strange))}; wanted those of "
            f"{ablation.title}: {'; '.join(map(repr, wanted))}. Are they of another table, or of this one "
            "before it was edited?"
        )
    rows = []
    for row in ablation.rows:
        published = {"paper_perplexity": row.perplexity, "paper_bleu": row.bleu}
        paper: dict[str, Any] = {"row": row.row, "column": row.column, **published}
        rows.append(paper | found.get((row.row, label(row.column)), {"seeds": 0}))
    names = [f"{name}{ending}" for name in MEASURES for ending in ("", "_std")]
    papers = [f"paper_{name}" for name in MEASURES]
    table = pd.DataFrame(rows).reindex(columns=[*KEY, *papers, *names, "seeds", SPEED, *CIRCUMSTANCES])
    table[[*names, SPEED]] = table[[*names, SPEED]].astype(float)
    return table


def label(column: Any) -> str:
    """Return a column's name: a CSV makes 5, 5.0 or nothing of it."""
    if column is None or (isinstance(column, float) and math.isnan(column)):
        return ""
    return str(int(column)) if isinstance(column, float) else str(column)


def ours(metrics: Mapping[Any, Any]) -> dict[str, Any]:
    """Return the figures and circumstances of one experiment."""
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
        SPEED: float(metrics.get(SPEED, math.nan)),
        **{name: metrics[name] for name in CIRCUMSTANCES if name in metrics},
    }
