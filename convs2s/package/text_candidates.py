"""Alignment candidates for a model folder, from any parallel text, as in the stage candidates (§5.4)."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

from convs2s.base.files import SIDES, read_pairs, temporary_folder
from convs2s.ids.candidates import write_candidates
from convs2s.ids.encoded import EncodedCorpus, write_encoded
from convs2s.ids.vocabulary import read_vocabulary
from convs2s.package.folder import load_tokenizers, read_settings
from convs2s.text.alignment.fast_align import align
from convs2s.text.alignment.link_counting import build_candidates
from convs2s.text.alignment.word_ids import copy_ids
from convs2s.text.vocabulary.encoding import encode_pairs

ITERATIONS = 5
MOST = 1000
"""Candidates kept per source token; a search may use fewer."""


def write_candidates_of_text(model: Path, source: Path, target: Path, out: Path) -> str:
    """Write a file of candidates for a model folder; return a one-line summary.

    Line i of the text `source` and line i of `target` are translations; both are tokenized here.

    Raises:
        OSError: if a file cannot be read or written.
        ValueError: if a file is damaged, or the files differ in their number of lines.
    """
    source_size, target_size = (len(read_vocabulary(model / f"{side}.tsv")) for side in SIDES)
    is_file = out.is_file() or not out.exists()  # else perhaps /dev/fd/63
    with temporary_folder(out.parent if is_file else Path(tempfile.gettempdir())) as work:
        folder = Path(work) / "encoded"
        encoded = encode_pairs(read_words(model, source, target), model)
        write_encoded(folder, encoded, (source_size, target_size))
        source_ids, target_ids = (EncodedCorpus.open(folder, side) for side in SIDES)
        corpus = copy_ids(source_ids, target_ids, Path(work))
        links = align(corpus, ITERATIONS, Path(work))
        candidates = build_candidates(corpus, links, MOST)
        write_candidates(out, candidates)
    linked = int((candidates.offsets[1:] > candidates.offsets[:-1]).sum())
    return (
        f"{len(source_ids):,} pairs: {len(candidates.targets):,} candidates for {linked:,} of "
        f"{source_size:,} source entries"
    )


def read_words(model: Path, source: Path, target: Path) -> Iterator[tuple[str, str]]:
    """Yield pairs of whitespace-separated words, as the model's codecs take them."""
    tokenizers = load_tokenizers(model, read_settings(model))
    for pair in read_pairs(source, target):
        first, second = (" ".join(tool.tokenize(line)) for tool, line in zip(tokenizers, pair, strict=True))
        yield first, second
