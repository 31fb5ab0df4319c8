"""Stage align: the filtered training text -> a dictionary for unknown-word replacement."""

from pathlib import Path

from convs2s.config.align import AlignParams
from convs2s.text.alignment.backends import BACKENDS
from convs2s.text.alignment.dictionary import write_dictionary
from convs2s.text.alignment.link_counting import build_dictionary
from convs2s.text.corpus.files import read_pairs
from pipelines.stages.values import Replacement


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
