"""What every section of params.yaml shares: frozen, strictly typed, no unknown keys; and common types."""

from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

COUNTABLE = 10**12
"""No real corpus, seed or number of updates is larger; anything larger is a typo or an attack."""

MOST_PROCESSES = 2**12
"""Of a machine, threads as well as processes: no machine has more hardware threads."""
MOST_TOKENS = 10**6
"""No sentence is longer."""

Count = Annotated[int, Field(ge=0, le=COUNTABLE)]
Positive = Annotated[int, Field(ge=1, le=COUNTABLE)]
Share = Annotated[float, Field(ge=0, lt=1)]
Processes = Annotated[int, Field(ge=1, le=MOST_PROCESSES)]

LANGUAGE = r"^[a-z]{2,3}$"
Languages = tuple[str, str]
"""Source and target language, as ISO 639 codes, which sacremoses and sacreBLEU know."""
Seeds = list[int]
"""One training run, and one DVC stage, per seed."""

NOTHING = "data/none"
"""The folder that params.yaml names where no model or text is given: DVC cannot depend on null."""


def path_or_none(path: str) -> Path | None:
    """Return the path that a key of params.yaml names; None for data/none."""
    return None if path == NOTHING else Path(path)


class Section(BaseModel):
    """A section of params.yaml: frozen, strictly typed, no unknown keys.

    The string below a key documents it, in `pipelines.check --list`.
    """

    model_config = ConfigDict(
        frozen=True, extra="forbid", strict=True, allow_inf_nan=False, use_attribute_docstrings=True
    )
