"""The parameters of the flows; Prefect builds its run form from these classes.

The form shows a dictionary as raw JSON, so values of params.yaml are lists of NAME=VALUE.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from convs2s.config.params import Params
from pipelines.preset import apply_overrides, parse_override


class RunParams(BaseModel):
    """Values that replace those of params.yaml, and how and where stages run."""

    model_config = ConfigDict(extra="forbid")

    overrides: list[str] = Field(
        default=[],
        description="values that replace those of params.yaml, each as NAME=VALUE: seeds=[1,2] or "
        "train.dropout=0.3; the results then become a DVC experiment",
    )
    parallel: int = Field(
        default=2, ge=1, description="CPU stages at once; includes trainings on a machine without GPUs"
    )
    remote: Literal["none", "gpu", "all"] = Field(
        default="none", description="stages to send to remote workers: none, those that use GPUs, or all"
    )

    def changes(self) -> dict[str, Any]:
        """Return the overrides by dotted name; raise a ValueError if one is not NAME=VALUE."""
        return dict(map(parse_override, self.overrides))

    def render(self, root: Path, more: Mapping[str, Any] | None = None) -> tuple[str, Params]:
        """Return the text of a clone's params.yaml with the overrides and `more`, and its parsed values."""
        text = (root / "params.yaml").read_text(encoding="utf-8")
        return apply_overrides(text, {**self.changes(), **(more or {})})
