"""Section tune: the choice of alpha (§4.3)."""

from typing import Annotated, Self

from pydantic import Field, model_validator

from convs2s.config.section import Section
from convs2s.config.translate import Alpha


class TuneParams(Section):
    """Choice of translate.alpha on download.development (§4.3); only for `translate.alpha: tuned`."""

    alphas: Annotated[list[Alpha], Field(min_length=1)]
    """Values to choose from; a single search covers them all."""

    @model_validator(mode="after")
    def _differ(self) -> Self:
        if len(set(self.alphas)) != len(self.alphas):
            raise ValueError(f"expected distinct alphas, found {self.alphas}")
        return self
