"""Section evaluate: scores, tables and pictures."""

from typing import Literal

from convs2s.config.section import Count, Section


class EvaluateParams(Section):
    """Scores, tables and pictures."""

    examples: Count
    """Sentences shown in the examples table."""
    heat_maps: Count
    """Sentences whose attention is drawn as a heat map."""
    rouge: Literal["gigaword", "duc2004"] | None
    """Also score ROUGE-1, 2 and L (§4.1): `gigaword` as F1 of whole texts, `duc2004` as recall of the first
    75 bytes with the jackknife over references; null: no ROUGE."""
