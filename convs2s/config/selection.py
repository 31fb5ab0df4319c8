"""Vocabulary selection, part of the sections train and translate (§5.4)."""

from convs2s.config.section import Count, Positive, Section


class SelectionParams(Section):
    """Vocabulary selection: a batch's output layer covers only part of the target vocabulary (§5.4).

    A translation then depends on the other sentences in its batch, because it may use their candidates.
    """

    common: Count
    """The most frequent target entries, which every batch includes (500 in the Lua code)."""
    candidates: Positive
    """Alignment candidates per source entry, only the most frequent ones (100 in the Lua code)."""
