"""Section filter: which training pairs are kept."""

from typing import Annotated, Literal

from pydantic import Field

from convs2s.config.section import Positive, Section


class FilterParams(Section):
    """Which training pairs are kept; null turns a limit off."""

    max_words: Positive | None
    """Most words on either side (175 in §4.1)."""
    max_ratio: Annotated[float, Field(ge=1)] | None
    """Largest ratio of the longer side to the shorter (1.5 in §4.1)."""
    ratio_of: Literal["words", "characters"]
    """Unit of `max_ratio`: `words`, as in the paper, or `characters`, relative to the ratio over the whole
    corpus, for languages written without spaces or with fewer, longer words than the other side."""
    drop_empty: bool
    """Drop pairs with an empty side."""
    drop_repeats: bool
    """Keep only the first of identical pairs; the paper keeps them all (T29)."""
    max_overlap: Annotated[float, Field(ge=0, le=1)] | None
    """Largest share of the validation, development or test pairs that may also be training pairs; with more,
    the stage stops."""
    valid_every: Annotated[int, Field(ge=2)] | None
    """Every Nth kept pair goes to validation; null when download.valid is given."""
