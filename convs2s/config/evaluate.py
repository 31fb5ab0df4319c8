"""Section evaluate: scores, tables and pictures."""

from typing import Annotated, Literal

from pydantic import Field

from convs2s.config.section import Count, Section


class EvaluateParams(Section):
    """Scores, tables and pictures."""

    ensembles: Annotated[list[Literal["all"]], Field(max_length=1)]
    """`[all]` also translates and scores the test set with an ensemble of the models of all train.seeds
    (§5.2), in separate stages; `[]`: only the single models."""
    examples: Count
    """Sentences shown in the examples table."""
    heat_maps: Count
    """Sentences whose attention is drawn as a heat map."""
    rouge: Literal["gigaword", "duc2004"] | None
    """Also report ROUGE-1, 2 and L (§4.1): `gigaword` is F1 on whole texts, `duc2004` is recall on the first
    75 bytes, with the jackknife over references; null: no ROUGE."""
