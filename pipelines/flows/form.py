"""What one can ask of a flow; the form of the Prefect pages is made of these classes.

A dictionary would be a field of raw JSON there, so values by name are lists of NAME=VALUE. What may stay
empty has the schema of what may be put there, and no default: `int | None` would be two fields with a switch.
"""

import argparse
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
from pipelines.preset.overrides import overridden, override, written
from pipelines.preset.render import preset_names, render

if TYPE_CHECKING:  # a command line that is wrong says so before DVC is loaded
    from pipelines.flows.graph import Stage

USUAL = {
    "seeds": "train.seeds",
    "ensembles": "evaluate.ensembles",
    "max_epochs": "train.max_epochs",
    "dropout": "train.dropout",
    "beam_size": "translate.beam_size",
}


def read_values(found: Any) -> Any:
    """Return a list of NAME=VALUE as a dictionary; raise a ValueError if one has another form."""
    try:
        return dict(map(override, found)) if isinstance(found, list) else found
    except argparse.ArgumentTypeError as error:
        raise ValueError(str(error)) from error


def write_values(values: Mapping[str, Any]) -> list[str]:
    """Return values as a list of NAME=VALUE."""
    return [f"{name}={written(value)}" for name, value in values.items()]


AS_LIST: Any = (
    BeforeValidator(read_values),
    PlainSerializer(write_values),
    WithJsonSchema({"type": "array", "items": {"type": "string"}}),
)
Values = Annotated[dict[str, Any], *AS_LIST]
Whole = Annotated[int | None, WithJsonSchema({"type": "integer"})]
Number = Annotated[float | None, WithJsonSchema({"type": "number"})]
Ensembles = Annotated[
    list[Literal["all"]], WithJsonSchema({"type": "array", "items": {"type": "string", "enum": ["all"]}})
]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Hours = Annotated[dict[str, Positive], *AS_LIST]


class Form(BaseModel):
    """A form, which Prefect keeps without the fields that are empty; its check of defaults knows no null."""

    model_config = ConfigDict(extra="forbid")

    @model_serializer(mode="wrap")
    def _filled(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return {name: value for name, value in handler(self).items() if value is not None}


def field(title: str, description: str, default: Any = None, **bounds: Any) -> Any:
    """Return a field of a form, which may stay empty."""
    if default is None:
        return Field(default_factory=lambda: None, title=title, description=description)
    return Field(default=default, title=title, description=description, **bounds)


class ValueParams(Form):
    """Values other than in params.yaml."""

    preset: Annotated[str | None, WithJsonSchema({"type": "string", "enum": preset_names()})] = field(
        "Preset", "where the values come from; empty: params.yaml"
    )
    seeds: list[int] = field("Seeds", "one training each; train.seeds", [])
    ensembles: Ensembles = field(
        "Ensembles", "all: the models of all seeds also translate together; evaluate.ensembles", []
    )
    max_epochs: Whole = field("Epochs", "at most; train.max_epochs")
    dropout: Number = field("Dropout", "probability of dropping; train.dropout")
    beam_size: Whole = field("Beam", "hypotheses of the search; translate.beam_size")
    overrides: Values = field("Other values", "each as NAME=VALUE: train.learning_rate=0.1", {})

    @model_validator(mode="after")
    def _once(self) -> Self:
        if twice := sorted(self._usual().keys() & self.overrides.keys()):
            raise ValueError(
                f"overrides: found {', '.join(twice)}, which has a field of its own. Use that one."
            )
        return self

    def _usual(self) -> dict[str, Any]:
        found = {name: getattr(self, field) for field, name in USUAL.items()}
        return {name: value for name, value in found.items() if value not in (None, [])}

    def values(self) -> dict[str, Any]:
        """Return all values, by dotted name."""
        return self._usual() | self.overrides

    def changes(self) -> dict[str, Any]:
        """Return what is other than in params.yaml: the preset, if one is named, and all values."""
        return ({"preset": self.preset} if self.preset else {}) | self.values()

    def written(self, root: Path, more: Mapping[str, Any] | None = None) -> tuple[str, Params]:
        """Return the text of params.yaml in a clone with these values and `more`, and what it says.

        Raises a ValueError if there is no such preset or name, or a value is not valid.
        """
        base = render(self.preset) if self.preset else (root / "params.yaml").read_text(encoding="utf-8")
        return overridden(base, {**self.values(), **(more or {})})


class RunParams(Form):
    """How stages are run."""

    force: bool = field("Force", "run stages again that are up to date", False)
    parallel: int = field("CPU stages at once", "also trainings, where there is no GPU", 2, ge=1)
    gpus: list[int] = field("GPUs", "ids of GPUs to use; none: all there are", [])
    hours: Hours = field(
        "Deadlines", "in hours, other than those of dvc.yaml, each as STAGE=HOURS: train=48", {}
    )
    remote: Literal["none", "gpu", "all"] = field(
        "Remote stages", "which stages go to remote workers: those that take GPUs, or all", "none"
    )
    remote_wait: Positive = field(
        "Wait for remote workers",
        "minutes that a stage may wait while no remote worker is there that can take it",
        1,
    )
    git_remote: str = field("Git remote", "shared with remote workers", "origin")

    @model_validator(mode="after")
    def _force_is_local(self) -> Self:
        if self.force and self.remote != "none":
            raise ValueError(
                "force and remote: stages run elsewhere come back through DVC's cache of runs, which would "
                "give the old results; wanted force only with remote none"
            )
        return self

    def is_remote(self, stage: "Stage") -> bool:
        """Tell whether a stage goes to a remote worker."""
        wanted = self.remote == "all" or (self.remote == "gpu" and stage.gpus > 0)
        return wanted and stage.travels

    def seconds(self, stage: "Stage") -> float:
        """Return a stage's deadline."""
        return 3600.0 * self.hours.get(stage.name, self.hours.get(stage.kind, stage.hours))
