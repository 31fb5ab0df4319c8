"""The parameters of the flows; Prefect builds its run form from these classes.

The form shows a dictionary as a raw JSON field, so named values are lists of NAME=VALUE. It shows `int |
None` as two fields with a switch, so an optional field has the schema of its value, and no default. Values
have the bounds of params.yaml in the form, too: the server checks these before it creates a run.
"""

import argparse
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    SerializerFunctionWrapHandler,
    WithJsonSchema,
    model_serializer,
    model_validator,
)

from convs2s.config.params import Params
from convs2s.config.section import Count
from pipelines.preset import apply_overrides, list_presets, parse_override, render, write_value

if TYPE_CHECKING:  # so that a wrong command line is reported before DVC is loaded
    from pipelines.flows.graph import Stage

USUAL = {
    "seeds": "seeds",
    "ensembles": "evaluate.ensembles",
    "max_epochs": "train.max_epochs",
    "dropout": "train.dropout",
    "beam_size": "translate.beam_size",
}


def list_schemas() -> dict[str, dict[str, Any]]:
    """Return the JSON schema of every key of params.yaml, by dotted name."""
    schema = Params.model_json_schema()
    found: dict[str, dict[str, Any]] = {}
    for name, part in schema["properties"].items():
        keys = schema["$defs"][part["$ref"].rpartition("/")[2]]["properties"] if "$ref" in part else {}
        found |= {f"{name}.{key}": value for key, value in keys.items()} or {name: part}
    return found


SCHEMAS = list_schemas()


def like(name: str) -> WithJsonSchema:
    """Return the schema of a key of params.yaml for a field that may be empty."""
    return WithJsonSchema({key: value for key, value in SCHEMAS[name].items() if key != "minItems"})


def read_values(found: Any) -> Any:
    """Return a list of NAME=VALUE as a dictionary; raise a ValueError if an item has another form."""
    try:
        return dict(map(parse_override, found)) if isinstance(found, list) else found
    except argparse.ArgumentTypeError as error:
        raise ValueError(str(error)) from error


def write_values(values: Mapping[str, Any]) -> list[str]:
    """Return values as a list of NAME=VALUE."""
    return [f"{name}={write_value(value)}" for name, value in values.items()]


AS_LIST: Any = (
    BeforeValidator(read_values),
    PlainSerializer(write_values),
    WithJsonSchema({"type": "array", "items": {"type": "string"}}),
)
KNOWN = f"^({'|'.join(map(re.escape, SCHEMAS))})[.=]"  # NAME=VALUE, where params.yaml has the name
NAMED: Any = (*AS_LIST[:2], WithJsonSchema({"type": "array", "items": {"type": "string", "pattern": KNOWN}}))
Values = Annotated[dict[str, Any], *NAMED]
Ensembles = Annotated[
    list[Literal["all"]], WithJsonSchema({"type": "array", "items": {"type": "string", "enum": ["all"]}})
]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Hours = Annotated[dict[str, Positive], *AS_LIST]


class Form(BaseModel):
    """A form, serialized without its empty fields: Prefect's validation rejects null."""

    model_config = ConfigDict(extra="forbid")

    @model_serializer(mode="wrap")
    def _filled(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return {name: value for name, value in handler(self).items() if value is not None}


def field(title: str, description: str, default: Any = None, **bounds: Any) -> Any:
    """Return a form field, which may be left empty; Prefect rejects a default of null, so it is made."""
    given = {"default_factory": lambda: None} if default is None else {"default": default}
    return Field(title=title, description=description, **given, **bounds)


class ValueParams(Form):
    """Values that replace those of params.yaml."""

    preset: Annotated[str | None, WithJsonSchema({"type": "string", "enum": list_presets()})] = field(
        "Preset", "source of all other values; if empty, params.yaml"
    )
    seeds: Annotated[list[int], like("seeds")] = field("Seeds", "one training for each", [])
    ensembles: Ensembles = field(
        "Ensembles", "all: also translate with an ensemble of all seeds (evaluate.ensembles)", []
    )
    max_epochs: Annotated[int | None, like("train.max_epochs")] = field(
        "Epochs", "maximum number of epochs (train.max_epochs)"
    )
    dropout: Annotated[float | None, like("train.dropout")] = field(
        "Dropout", "dropout probability (train.dropout)"
    )
    beam_size: Annotated[int | None, like("translate.beam_size")] = field(
        "Beam", "beam size of the search (translate.beam_size)"
    )
    overrides: Values = field("Other values", "each as NAME=VALUE, such as train.learning_rate=0.1", {})

    def values(self) -> dict[str, Any]:
        """Return all values, by dotted name; one of `overrides` takes precedence over its own field."""
        usual = {name: getattr(self, field) for field, name in USUAL.items()}
        return {name: value for name, value in usual.items() if value not in (None, [])} | self.overrides

    def changes(self) -> dict[str, Any]:
        """Return everything that replaces params.yaml: the preset, if any, and all values."""
        return ({"preset": self.preset} if self.preset else {}) | self.values()

    def render(self, root: Path, more: Mapping[str, Any] | None = None) -> tuple[str, Params]:
        """Return the text of a clone's params.yaml with these values and `more`, and the parsed parameters.

        Raises a ValueError if there is no such preset or key, or a value is invalid.
        """
        base = render(self.preset) if self.preset else (root / "params.yaml").read_text(encoding="utf-8")
        return apply_overrides(base, {**self.values(), **(more or {})})


class RunParams(Form):
    """How and where stages run."""

    force: bool = field("Force", "rerun stages that are up to date", False)
    parallel: int = field("CPU stages at once", "includes trainings on a machine without GPUs", 2, ge=1)
    gpus: list[Count] = field("GPUs", "ids of the GPUs to use; if empty, all", [])
    hours: Hours = field(
        "Deadlines", "hours that replace those of dvc.yaml, each as STAGE=HOURS: train=48", {}
    )
    remote: Literal["none", "gpu", "all"] = field(
        "Remote stages", "stages to send to remote workers: none, those that use GPUs, or all", "none"
    )
    git_remote: str = field("Git remote", "the git remote shared with remote workers", "origin")

    @model_validator(mode="after")
    def _force_is_local(self) -> Self:
        if self.force and self.remote != "none":
            raise ValueError("expected force only with remote none: DVC's run cache has the old results")
        return self

    def is_remote(self, stage: "Stage") -> bool:
        """Return whether a stage goes to a remote worker."""
        return (self.remote == "all" and stage.command != "") or (self.remote == "gpu" and stage.gpus > 0)

    def seconds(self, stage: "Stage") -> float:
        """Return a stage's deadline."""
        return 3600.0 * self.hours.get(stage.name, self.hours.get(stage.kind, stage.hours))
