"""Section replace: unknown words (§4.3)."""

from convs2s.config.section import Section


class ReplaceParams(Section):
    """Unknown-word replacement by attention (§4.3)."""

    enabled: bool
    """Whether translations come with replacement; word models: true, BPE: false (T35)."""
