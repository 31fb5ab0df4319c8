"""What every section of params.yaml shares: frozen, strictly typed, no unknown keys; and common types."""

from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from convs2s.base.parallel import MOST_PROCESSES

COUNTABLE = 10**12
"""No real corpus, seed or number of updates is larger; anything larger is a typo or an attack."""

MOST_TOKENS = 10**6
"""No sentence is longer."""

Count = Annotated[int, Field(ge=0, le=COUNTABLE)]
Positive = Annotated[int, Field(ge=1, le=COUNTABLE)]
Share = Annotated[float, Field(ge=0, lt=1)]
Processes = Annotated[int, Field(ge=1, le=MOST_PROCESSES)]

VERSION = r"^[0-9]{1,9}(\.[0-9]{1,9}){2}$"
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


def later(value: Any, since: str) -> Any:
    """Return the default of a key that was added to a section after files had been written without it.

    `layer_dropout: Share = later(0.0, since="1.2.0")`: a params.yaml, model folder or checkpoint that lacks
    the key means 0.0, as before it existed. Fingerprints and model folders leave it out where it has this
    value; see `convs2s.config.format`.

    Args:
        value: as it would be in params.yaml, in full: not 3 x 256, but [256, 256, 256].
        since: the first version of convs2s that knows the key.
    """
    return Field(default=value, validate_default=True, json_schema_extra={"since": since})


class Section(BaseModel):
    """A section of params.yaml: frozen, strictly typed, no unknown keys.

    The string below a key documents it, in `pipelines.check --list`.
    """

    model_config = ConfigDict(
        frozen=True, extra="forbid", strict=True, allow_inf_nan=False, use_attribute_docstrings=True
    )
