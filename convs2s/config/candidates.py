"""Section candidates: alignment candidates for vocabulary selection (§5.4)."""

from convs2s.config.section import Positive, Section


class CandidatesParams(Section):
    """Alignment candidates for vocabulary selection (§5.4), from a second alignment, of the encoded text."""

    per_source: Positive | None
    """Target entries kept per source entry; null: none, and no second alignment."""
