"""Stage align: the filtered training text -> a dictionary for unknown-word replacement."""

from pathlib import Path

from convs2s.config.align import AlignParams
from convs2s.text.alignment.dictionary import write_dictionary
from convs2s.text.alignment.dictionary_counting import build_dictionary
from convs2s.text.alignment.fast_align import align
from convs2s.text.alignment.fast_align_programs import align_with_programs
from convs2s.text.corpus.files import read_pairs

BACKENDS = {"builtin": align, "fast_align": align_with_programs}


def run(params: AlignParams, source: Path, target: Path, out: Path) -> None:
    """Read two files of words, line i with line i; write out/dictionary.tsv, empty if backend is none."""
    out.mkdir(parents=True, exist_ok=True)
    if params.backend == "none":
        write_dictionary(out / "dictionary.tsv", [])
        return
    links = BACKENDS[params.backend](source, target, params.iterations, out.parent)
    write_dictionary(out / "dictionary.tsv", build_dictionary(read_pairs(source, target), links))
