"""Vocabulary selection, a part of the sections train and translate (§5.4)."""

from convs2s.config.section import Count, Positive, Section


class SelectionParams(Section):
    """Vocabulary selection: a batch's output layer has some of the target types only (§5.4).

    A translation then depends on the sentences that share its batch: their candidates are open to it, too.
    """

    common: Count
    """Most frequent target types that every batch has (500 in the Lua code)."""
    candidates: Positive
    """Alignment candidates of each source type, the most frequent ones (100 in the Lua code)."""
