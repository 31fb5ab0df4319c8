"""The stages align and candidates, with each backend."""

from collections import Counter
from pathlib import Path
from typing import Literal

import pytest

from convs2s.base.files import write_folder
from convs2s.config.results import ReplaceParams
from convs2s.config.text import AlignParams, CandidatesParams
from convs2s.ids.candidates import read_candidates
from convs2s.ids.encoded import write_encoded
from convs2s.text.alignment.dictionary import read_dictionary
from convs2s.text.vocabulary.codec import Codec
from convs2s.text.vocabulary.encoding import encode_pairs
from convs2s.text.vocabulary.learning import write_codecs
from pipelines.stages import align, candidates

Backend = Literal["builtin", "fast_align", "none"]
PAIRS = [
    ("the house", "das Haus"), ("the book", "das Buch"), ("a book", "ein Buch"), ("a house", "ein Haus"),
    ("the blue book", "das blaue Buch"),
]  # fmt: skip


def run(folder: Path, backend: Backend, replaces: bool = True) -> Path:
    """Run the stage align; return the dictionary it wrote."""
    write_folder(folder / "train", PAIRS)
    params = AlignParams(backend=backend, iterations=5)
    sides = folder / "train" / "source.txt", folder / "train" / "target.txt"
    align.run(params, ReplaceParams(enabled=replaces), *sides, folder / "alignment")
    return folder / "alignment" / "dictionary.tsv"


def test_the_translations_of_a_small_corpus_are_found(tmp_path: Path) -> None:
    """Co-occurrence determines which words align; counts are the words' frequencies."""
    assert run(tmp_path, "builtin").read_text() == (
        "source\ttarget\tcount\tlinks\na\tein\t2\t2\nblue\tblaue\t1\t1\nbook\tBuch\t3\t3\n"
        "house\tHaus\t2\t2\nthe\tdas\t3\t3\n"
    )
    assert sorted(path.name for path in tmp_path.iterdir()) == ["alignment", "train"]


def test_nothing_is_aligned_that_nothing_reads(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Without replacement, nothing reads the dictionary; with backend none, unknown words are copied."""
    assert read_dictionary(run(tmp_path, "none")) == {}
    assert read_dictionary(run(tmp_path, "builtin", replaces=False)) == {}
    assert "iteration" not in capsys.readouterr().err


def test_candidates_are_those_of_the_tokens_themselves(tmp_path: Path) -> None:
    """Candidates are counted in the tokens that a model sees, which here are pieces of whole words."""
    source, target = (Counter(" ".join(side).split()) for side in zip(*PAIRS, strict=True))
    vocabulary = tmp_path / "vocabulary"
    vocabulary.mkdir()
    write_codecs(vocabulary, (source, target), "bpe", joint=False, sizes=(24, 29))
    write_encoded(tmp_path / "encoded", encode_pairs(PAIRS, vocabulary), (99, 99))
    params = AlignParams(backend="builtin", iterations=5), CandidatesParams(per_source=1000)
    candidates.run(*params, tmp_path / "encoded", tmp_path / "candidates")
    found = read_candidates(tmp_path / "candidates" / "candidates.npz")
    codecs = [Codec.load(vocabulary, side) for side in ("source", "target")]
    for words in (("house", "Haus"), ("book", "Buch"), ("a", "ein")):
        id_, expected = (codec.encode([word])[0] for codec, word in zip(codecs, words, strict=True))
        assert found.targets[found.offsets[id_] : found.offsets[id_ + 1]].tolist() == [expected], words
    assert sorted(path.name for path in tmp_path.iterdir()) == ["candidates", "encoded", "vocabulary"]
