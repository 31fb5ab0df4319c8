"""Section align: word alignment."""

from typing import Literal

from convs2s.config.section import Positive, Section


class AlignParams(Section):
    """Alignment for the dictionary of unknown-word replacement (§4.3) and for vocabulary selection (§5.4)."""

    backend: Literal["builtin", "exact", "fast_align", "none"]
    """`exact` is the built-in aligner, made to give the same links as fast_align by repeating its error in
    fitting the prior; `fast_align` needs the programs fast_align and atools on PATH; `none` makes an empty
    dictionary, so that unknown words are copied. Nothing is aligned unless replace.enabled is true."""
    iterations: Positive
    """EM iterations in each direction (5 in fast_align)."""
