"""The word aligners that `align.backend` names."""

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from convs2s.text.alignment.fast_align import align
from convs2s.text.alignment.fast_align_programs import align_with_programs
from convs2s.text.alignment.word_ids import Corpus, Links

BACKENDS: dict[str, Callable[[Corpus, int, Path], Iterator[Links]]] = {
    "builtin": align,
    "exact": partial(align, exact=True),
    "fast_align": align_with_programs,
}
"""Functions of a corpus, the number of iterations, and a folder for temporary files."""
