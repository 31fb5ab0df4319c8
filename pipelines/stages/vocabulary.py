"""Stage vocabulary: filtered training pairs -> segmentation and vocabulary of each side."""

from pathlib import Path

from convs2s.base.files import atomic_path, read_folder
from convs2s.config.section import path_or_none
from convs2s.config.text import VocabularyParams
from convs2s.config.train import StartFrom
from convs2s.text.vocabulary.codec import copy_codecs
from convs2s.text.vocabulary.learning import count_words_of_pairs, write_codecs


def run(params: VocabularyParams, start_from: StartFrom, train: Path, out: Path) -> None:
    """Read train/{source,target}.txt; write out/{source,target}.{tsv,model} and out/segmentation.json.

    A training that starts from a model takes its vocabularies.
    """
    if start := path_or_none(start_from):
        copy_codecs(start, out)
        return
    counts = count_words_of_pairs(read_folder(train))
    with atomic_path(out) as temporary:
        temporary.mkdir()
        sizes = (params.source_size, params.target_size)
        write_codecs(temporary, counts, params.kind, params.joint, sizes)
