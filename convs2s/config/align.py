"""Section align: word alignment."""

from typing import Literal, Self

from pydantic import model_validator

from convs2s.config.section import Positive, Section


class AlignParams(Section):
    """Alignment for the dictionary of unknown-word replacement (§4.3) and for vocabulary selection (§5.4)."""

    backend: Literal["builtin", "exact", "fast_align", "none"]
    """`exact` is the built-in aligner with the links of fast_align, of which it repeats an error in fitting
    the prior; `fast_align` needs the programs fast_align and atools on PATH; `none` makes an empty
    dictionary."""
    iterations: Positive
    """EM iterations in each direction (5 in fast_align)."""
    candidates: Positive | None
    """Target entries kept per source entry, for vocabulary selection: the encoded text is aligned once more
    to find them; null: it is not."""

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.candidates is not None and self.backend == "none":
            raise ValueError("candidates need an alignment: set backend to builtin, or candidates to null")
        return self
