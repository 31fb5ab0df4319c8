"""Section augment: training pairs that models translate."""

from typing import Annotated, Self

from pydantic import Field, model_validator

from convs2s.config.download import WORD
from convs2s.config.section import NOTHING, ModelFolder, Section


class AugmentParams(Section):
    """Training pairs that models translate: for back-translation or distillation; filtered like others."""

    models: ModelFolder
    """A model folder, or a folder of several, which translate as an ensemble; data/none: no such pairs."""
    text: str
    """Target sentences to translate back (Sennrich et al., 2016): a file, one per line, plain or compressed,
    or a folder of such files; data/none: the source of the training pairs is translated, for distillation
    (Kim & Rush, 2016)."""
    tag: Annotated[str, Field(pattern=WORD)] | None
    """Word put before the source of each of these pairs (Caswell et al., 2019); null: none."""
    keep: bool
    """Whether to train on the pairs of download.train, too."""

    @model_validator(mode="after")
    def _have_a_translator(self) -> Self:
        if self.models == NOTHING and (self.text != NOTHING or not self.keep):
            raise ValueError(
                f"expected models, or text {NOTHING} and keep true without any, found text "
                f"{self.text} and keep {str(self.keep).lower()}"
            )
        return self
