"""Section augment: training pairs that models translate."""

from typing import Annotated, Self

from pydantic import Field, model_validator

from convs2s.config.download import WORD
from convs2s.config.section import ModelFolder, Section


class AugmentParams(Section):
    """Training pairs that models translate: for back-translation or distillation; filtered like others."""

    models: list[ModelFolder]
    """Model folders that translate, several as an ensemble; []: there are no such pairs."""
    text: list[str]
    """Files of target sentences to translate back (Sennrich et al., 2016), one per line, plain or compressed;
    []: the source of the training pairs is translated, for distillation (Kim & Rush, 2016)."""
    tag: Annotated[str, Field(pattern=WORD)] | None
    """Word put before the source of each of these pairs (Caswell et al., 2019); null: none."""
    keep: bool
    """Whether to train on the pairs of download.train, too."""

    @model_validator(mode="after")
    def _have_a_translator(self) -> Self:
        if not self.models and (self.text or not self.keep):
            raise ValueError(
                "expected models, or text [] and keep true without any, found text "
                f"{self.text} and keep {str(self.keep).lower()}"
            )
        return self
