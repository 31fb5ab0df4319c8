"""Section filter: which training pairs are kept."""

from typing import Annotated, Literal

from pydantic import Field

from convs2s.config.section import Positive, Section


class FilterParams(Section):
    """Which training pairs are kept; null switches a limit off."""

    max_words: Positive | None
    """Longest side, in words (175 in §4.1)."""
    max_ratio: Annotated[float, Field(ge=1)] | None
    """Longer side / shorter side (1.5 in §4.1)."""
    ratio_of: Literal["words", "characters"]
    """What `max_ratio` counts. `characters`: relative to their ratio in the whole corpus, so that a language
    may be written without spaces, or with fewer or longer words, than the other; `words`, as in the paper."""
    drop_empty: bool
    """Drop pairs with an empty side."""
    drop_repeats: bool
    """Keep only the first of equal pairs; the paper does not (T29)."""
    valid_every: Annotated[int, Field(ge=2)] | None
    """Every N-th kept pair goes to validation; null when download.valid is given."""
