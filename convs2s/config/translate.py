"""Section translate: beam search (§4.3), in params.yaml and in model folders."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from convs2s.config.section import MOST_TOKENS, Section, later
from convs2s.config.text import SelectionParams

Alpha = Annotated[float, Field(ge=0, le=10)]
"""Exponent in |y|^alpha; much larger values overflow, and 2 already favors the longest hypothesis."""


Beam = Annotated[int, Field(ge=1, le=10**5)]

SearchPlace = Literal["auto", "host", "device", "graphs"]
"""Values of `run.search`, which describes them; `graphs` was version 1.1's, and means `device`."""


class TranslateParams(Section):
    """Beam search (§4.3) as the library takes it: alpha is a number."""

    beam_size: Beam
    """Hypotheses kept per sentence; 1 is greedy search."""
    alpha: Alpha
    """Final scores are log-likelihood / |y|^alpha; 1 gives the mean over tokens."""
    min_length: Annotated[int, Field(ge=0, le=MOST_TOKENS)]
    """Shortest hypothesis, in tokens, not counting EOS."""
    max_length_ratio: Annotated[float, Field(ge=0, le=1000)]
    """Longest hypothesis = ratio * source tokens + max_length_extra, not counting EOS on either side."""
    max_length_extra: Annotated[float, Field(ge=1, le=MOST_TOKENS)]
    """See max_length_ratio; in tokens. The sum is rounded down, so fractions matter."""
    max_length_of: Literal["sentence", "batch"]
    """Which source tokens count: the sentence's own (`sentence`), or those of the longest sentence in the
    batch (`batch`), as in fairseq, so that a translation may depend on the rest of its batch."""
    n_best: Beam
    """Hypotheses written per sentence, at most beam_size."""
    legacy_eos: bool
    """Accept EOS anywhere among the 2 * beam_size candidates, as fairseq did until late 2017 (T21)."""
    batch_sentences: Annotated[int, Field(ge=1, le=10**6)]
    """Sentences translated at once; on a GPU up to 8 times as many, as far as their scores fit its memory,
    unless max_length_of or `selection` make a translation depend on its batch."""
    precision: Literal["auto", "float32", "bfloat16", "int8"]
    """Precision of matrix products; softmax and scores are always float32. `auto`: bfloat16 where the
    processor or GPU multiplies it faster, else float32. int8 is for x86 CPUs, and computed there even if
    there is a GPU."""
    selection: SelectionParams | None
    """Target entries scored in a batch; null: the whole vocabulary."""

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.n_best > self.beam_size:
            raise ValueError(f"expected n_best of at most beam_size, {self.beam_size}, found {self.n_best}")
        return self


class TranslateSection(TranslateParams):
    """Beam search as params.yaml has it: alpha is a number, or `tuned`."""

    alpha: Alpha | Literal["tuned"]  # type: ignore[assignment]
    """Final scores are log-likelihood / |y|^alpha; 1 gives the mean over tokens; `tuned` picks the best of
    tune.alphas on the development set, for each seed and for the ensemble."""


class PackagedTranslateParams(TranslateParams):
    """Beam search as a model folder has it, and what its text is."""

    split_sentences: bool = later(True, since="1.1.0")
    """Whether text that users send is translated sentence by sentence."""
    capitals: bool = later(True, since="1.2.0")
    """Whether lines and words in capitals or title case are lowered for the model, and full-width characters
    narrowed."""
