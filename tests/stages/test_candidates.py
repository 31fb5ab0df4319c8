"""The stage candidates: encoded pairs -> alignment candidates."""

from collections import Counter
from pathlib import Path

import pytest

from convs2s.config.align import AlignParams
from convs2s.text.alignment.candidates import has_candidates, read_candidates
from convs2s.text.vocabulary.codec import Codec
from convs2s.text.vocabulary.encoded import write_encoded
from convs2s.text.vocabulary.encoding import encode_pairs
from convs2s.text.vocabulary.learning import write_codecs
from pipelines.stages import candidates

PAIRS = [
    ("the house", "das Haus"), ("the book", "das Buch"), ("a book", "ein Buch"), ("a house", "ein Haus"),
    ("the blue book", "das blaue Buch"),
]  # fmt: skip


@pytest.mark.parametrize("kind", ["word", "bpe"])
def test_the_tokens_themselves_are_aligned(tmp_path: Path, kind: str) -> None:
    """Co-occurrence determines which words align; pieces are whole words here."""
    counts = [Counter(" ".join(side).split()) for side in zip(*PAIRS, strict=True)]
    sizes = (5, 5) if kind == "word" else (24, 29)
    (tmp_path / "vocabulary").mkdir()
    write_codecs(tmp_path / "vocabulary", (counts[0], counts[1]), kind, joint=False, sizes=sizes)  # type: ignore[arg-type]
    source, target = (Codec.load(tmp_path / "vocabulary", side) for side in ("source", "target"))
    write_encoded(tmp_path / "encoded", encode_pairs(PAIRS, tmp_path / "vocabulary"), (99, 99))
    params = AlignParams(backend="builtin", iterations=5, candidates=1000)
    candidates.run(params, tmp_path / "encoded", tmp_path / "candidates")
    found = read_candidates(tmp_path / "candidates" / "candidates.npz")
    for word, translation in {"house": "Haus", "book": "Buch", "a": "ein"}.items():
        [id_], wanted = source.encode([word])[:-1], target.encode([translation])[:-1]
        assert found.targets[found.offsets[id_] : found.offsets[id_ + 1]].tolist() == wanted, word
    assert sorted(path.name for path in tmp_path.iterdir()) == ["candidates", "encoded", "vocabulary"]


def test_without_candidates_the_output_never_changes(tmp_path: Path) -> None:
    """No corpus is read, so this stage does not make training depend on one."""
    params = AlignParams(backend="builtin", iterations=5, candidates=None)
    for name, iterations in (("one", 5), ("other", 7)):
        changed = params.model_copy(update={"iterations": iterations})
        candidates.run(changed, tmp_path / "no" / name, tmp_path / name)
    one, other = (tmp_path / name / "candidates.npz" for name in ("one", "other"))
    assert one.read_bytes() == other.read_bytes()
    assert not has_candidates(one)
