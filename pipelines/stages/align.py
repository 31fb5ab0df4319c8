"""Stage align: the filtered training text -> a dictionary for unknown-word replacement."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from convs2s.config.align import AlignParams
from convs2s.config.tokenize import TokenizeParams
from convs2s.text.alignment.dictionary import write_dictionary
from convs2s.text.alignment.fast_align import Links, align
from convs2s.text.alignment.fast_align_programs import align_with_programs
from convs2s.text.alignment.link_counting import build_dictionary
from convs2s.text.corpus.files import read_lines, read_pairs, temporary_folder, write_lines
from convs2s.text.words.bare_words import bare_words

BACKENDS: dict[str, Callable[[Path, Path, int, Path], Iterator[Links]]] = {
    "builtin": align,
    "exact": partial(align, exact=True),
    "fast_align": align_with_programs,
}


def run(params: AlignParams, tokenize: TokenizeParams, source: Path, target: Path, out: Path) -> None:
    """Read two files of words, parallel by line; write out/dictionary.tsv, empty if backend is none."""
    out.mkdir(parents=True, exist_ok=True)
    if params.backend == "none":
        write_dictionary(out / "dictionary.tsv", [])
        return
    with bare(source, tokenize, out.parent) as sources, bare(target, tokenize, out.parent) as targets:
        links = BACKENDS[params.backend](sources, targets, params.iterations, out.parent)
        write_dictionary(out / "dictionary.tsv", build_dictionary(read_pairs(sources, targets), links))


@contextmanager
def bare(path: Path, tokenize: TokenizeParams, folder: Path) -> Iterator[Path]:
    """Yield a file of the words for the dictionary: `path` itself, or a temporary file in `folder`."""
    if not tokenize.lossless:
        yield path
        return
    with temporary_folder(folder) as work:
        bare_path = Path(work) / path.name
        write_lines(bare_path, (" ".join(bare_words(line.split(), tokenize)) for line in read_lines(path)))
        yield bare_path
