"""BPE with merges left out at random."""

from pathlib import Path
from typing import Any

import pytest

from convs2s.text.vocabulary import bpe_dropout
from convs2s.text.vocabulary.bpe_dropout import BpeDropout
from convs2s.text.vocabulary.codec import Codec
from convs2s.text.vocabulary.encoded import EncodedCorpus
from convs2s.text.vocabulary.vocabulary import UNK
from tests.train.tiny import write_words


def write(folder: Path, probability: float = 0.3, seed: int = 1, number: int = 0) -> list[bytes]:
    """Write the ids of a pass to folder/pass; return them."""
    inputs = folder / "encoded" / "train", folder / "vocabulary"
    BpeDropout(*inputs, probability, seed).write(number, folder / "pass")
    return [path.read_bytes() for path in sorted((folder / "pass").iterdir())]


def test_ids_follow_from_seed_and_pass(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each pass and each training splits words in another way; any number of processes, the same."""
    write_words(tmp_path)
    monkeypatch.setattr(bpe_dropout, "CHUNK_PAIRS", 7)
    wanted = write(tmp_path)
    assert write(tmp_path, number=1) != wanted
    assert write(tmp_path, seed=2) != wanted

    def in_this_process(make: Any, items: Any, *_: Any) -> Any:
        return map(make(), ([item] for item in items))

    monkeypatch.setattr(bpe_dropout, "map_chunks", in_this_process)
    assert write(tmp_path) == wanted


def test_words_stay_the_same(tmp_path: Path) -> None:
    """They are split into more pieces, each an entry of its side; without dropout, as by sentencepiece."""
    write_words(tmp_path)
    for probability in (0.3, 0.0):
        write(tmp_path, probability)
        for side in ("source", "target"):
            codec = Codec.load(tmp_path / "vocabulary", side)
            plain = EncodedCorpus.open(tmp_path / "encoded" / "train", side)
            split = EncodedCorpus.open(tmp_path / "pass", side, len(codec.vocabulary))
            rows = range(len(plain))
            assert [codec.decode(split[i]) for i in rows] == [codec.decode(plain[i]) for i in rows]
            assert UNK not in split.ids
            if probability:
                assert split.lengths.sum() > plain.lengths.sum()
            else:
                assert split.ids.tolist() == plain.ids.tolist()


def test_real_words_are_split_as_by_sentencepiece(tmp_path: Path) -> None:
    """Without dropout, for words of any length and script."""
    write_words(tmp_path)
    codec = Codec.load(tmp_path / "vocabulary", "source")
    for words in (["stationwidest"], ["a_b", "lowernewest", "rest"], ["wiiider", "\u2581est"]):
        assert codec.split(words, 0.0, lambda: 0.5) == codec.encode(words)
