"""Sections tune, replace, evaluate, package: what is done with trained models."""

from typing import Annotated, Literal

from pydantic import Field

from convs2s.config.section import Count, Section, later
from convs2s.config.translate import Alpha


class TuneParams(Section):
    """Choice of translate.alpha on download.development (§4.3); only for `translate.alpha: tuned`."""

    alphas: Annotated[list[Alpha], Field(min_length=1)]
    """Values to choose from; a single search covers them all."""


class ReplaceParams(Section):
    """Unknown-word replacement by attention (§4.3)."""

    enabled: bool
    """Whether unknown words in translations are replaced: true for word models, false for BPE (T35)."""


class EvaluateParams(Section):
    """Scores, tables and pictures."""

    ensembles: Annotated[list[Literal["all"]], Field(max_length=1)]
    """`[all]` also translates and scores the test set with an ensemble of the models of all `seeds` (§5.2),
    in separate stages; `[]`: only the single models."""
    examples: Count
    """Sentences shown in the examples table."""
    heat_maps: Count
    """Sentences whose attention is drawn as a heat map."""
    rouge: Literal["gigaword", "duc2004"] | None
    """Also report ROUGE-1, 2 and L (§4.1): `gigaword` is F1 on whole texts, `duc2004` is recall on the first
    75 bytes, with the jackknife over references; null: no ROUGE."""


class PackageParams(Section):
    """The model folder for users."""

    name: Annotated[str, Field(min_length=1)]
    """Title of the model card."""
    data_license: str
    """License of the training data, for the model card."""
    domain: str | None
    """Kind of text in the training data, such as news, for the model card; null: unknown."""
    split_sentences: bool = later(True, since="1.2.0")
    """Whether text that users send is translated sentence by sentence; false for a model that was trained on
    longer texts. The pipeline's own lines are never split."""
