"""Stage align: the filtered training text -> a dictionary for unknown-word replacement."""

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from convs2s.config.align import AlignParams
from convs2s.text.alignment.dictionary import write_dictionary
from convs2s.text.alignment.fast_align import Links, align
from convs2s.text.alignment.fast_align_programs import align_with_programs
from convs2s.text.alignment.link_counting import build_dictionary
from convs2s.text.corpus.files import read_pairs
from pipelines.stages.values import Replacement

BACKENDS: dict[str, Callable[[Path, Path, int, Path], Iterator[Links]]] = {
    "builtin": align,
    "exact": partial(align, exact=True),
    "fast_align": align_with_programs,
}


def run(params: AlignParams, replaces: Replacement, source: Path, target: Path, out: Path) -> None:
    """Read two files of words, parallel by line; write out/dictionary.tsv.

    It is empty if nothing reads it, because unknown words are not replaced, or if `params.backend` is none.
    """
    out.mkdir(parents=True, exist_ok=True)
    if not replaces or params.backend == "none":
        write_dictionary(out / "dictionary.tsv", [])
        return
    links = BACKENDS[params.backend](source, target, params.iterations, out.parent)
    write_dictionary(out / "dictionary.tsv", build_dictionary(read_pairs(source, target), links))
