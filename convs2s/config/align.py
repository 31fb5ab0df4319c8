"""Section align: word alignment."""

from typing import Literal

from convs2s.config.section import Positive, Section


class AlignParams(Section):
    """Alignment for the dictionary of unknown-word replacement (§4.3) and for vocabulary selection (§5.4)."""

    backend: Literal["builtin", "fast_align", "none"]
    """`builtin` is our aligner, which gives the links of fast_align, the authors' program (T33); `fast_align`
    needs the programs fast_align and atools on PATH, and is for comparisons; `none` makes an empty
    dictionary, so that unknown words are copied. Nothing is aligned unless replace.enabled is true."""
    iterations: Positive
    """EM iterations in each direction (5 in fast_align)."""
