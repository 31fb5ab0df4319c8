"""Stage align: the filtered training text -> a dictionary for unknown-word replacement."""

from pathlib import Path

from convs2s.base.files import temporary_folder
from convs2s.config.results import ReplaceParams
from convs2s.config.text import AlignParams
from convs2s.text.alignment.backends import BACKENDS
from convs2s.text.alignment.dictionary import write_dictionary
from convs2s.text.alignment.link_counting import build_dictionary
from convs2s.text.alignment.word_ids import number_words


def run(align: AlignParams, replace: ReplaceParams, source: Path, target: Path, out: Path) -> None:
    """Read two files of words, parallel by line; write out/dictionary.tsv.

    It is empty if nothing reads it, because unknown words are not replaced, or if `align.backend` is none.
    """
    out.mkdir(parents=True, exist_ok=True)
    if not replace.enabled or align.backend == "none":
        write_dictionary(out / "dictionary.tsv", [])
        return
    with temporary_folder(out.parent) as folder:
        corpus, words = number_words(source, target, folder)
        links = BACKENDS[align.backend](corpus, align.iterations, folder)
        write_dictionary(out / "dictionary.tsv", build_dictionary(corpus, words, links))
