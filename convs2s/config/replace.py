"""Section replace: unknown words (§4.3)."""

from convs2s.config.section import Section


class ReplaceParams(Section):
    """Unknown-word replacement by attention (§4.3)."""

    enabled: bool
    """Whether unknown words in translations are replaced: true for word models, false for BPE (T35)."""
