"""Section evaluate: scores, tables and pictures."""

from typing import Annotated, Literal

from pydantic import Field

from convs2s.config.section import Count, Section


class EvaluateParams(Section):
    """Scores, tables and pictures."""

    ensembles: Annotated[list[Literal["all"]], Field(max_length=1)]
    """`[all]` also translates the test set with the models of all train.seeds together (§5.2), in stages of
    its own, and scores that; `[]`: each model by itself."""
    examples: Count
    """Sentences shown in the examples table."""
    heat_maps: Count
    """Sentences whose attention is drawn as a heat map."""
    rouge: Literal["gigaword", "duc2004"] | None
    """Also score ROUGE-1, 2 and L (§4.1): `gigaword` as F1 of whole texts, `duc2004` as recall of the first
    75 bytes with the jackknife over references; null: no ROUGE."""
