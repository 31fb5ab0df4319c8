"""What every section of params.yaml shares: frozen, strictly typed, no unknown keys."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

COUNTABLE = 10**12
"""No corpus, seed or number of updates is larger, only slips and attacks."""

Count = Annotated[int, Field(ge=0, le=COUNTABLE)]
Positive = Annotated[int, Field(ge=1, le=COUNTABLE)]
Share = Annotated[float, Field(ge=0, lt=1)]


class Section(BaseModel):
    """A section of params.yaml: frozen, strictly typed, no unknown keys.

    The text below a key is its meaning, for `pipelines.check --list` and docs/all-parameters.md. They read
    the source; Pydantic's use_attribute_docstrings would at every import, for a tenth of a second.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)
