"""Properties of codecs and batches."""

from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from convs2s.ids.batching import Batching
from convs2s.ids.vocabulary import EOS, UNK
from convs2s.text.vocabulary.codec import Codec
from convs2s.text.vocabulary.segmentation import replace_mark
from tests.decode.parrot import write_bpe_vocabulary, write_word_vocabulary
from tests.package.small_package import WORDS

ALPHABET = sorted(set("".join(WORDS)))
KNOWN_WORDS = st.text(st.sampled_from(ALPHABET), min_size=1, max_size=8)
ANY_WORDS = st.text(max_size=12).map(lambda text: "".join(text.split())).filter(bool)


@pytest.fixture(scope="module")
def codecs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Codec]:
    folder: Path = tmp_path_factory.mktemp("codecs")
    bpe, word = write_bpe_vocabulary(folder / "bpe", WORDS, size=30), write_word_vocabulary(folder / "word")
    return {"bpe": Codec.load(bpe, "source"), "word": Codec.load(word, "source")}


@pytest.mark.parametrize("kind", ["bpe", "word"])
def test_any_words_have_ids(codecs: dict[str, Codec], kind: str) -> None:
    """Ids end with the only EOS; pieces belong to words, in order; words of known characters come back."""
    codec = codecs[kind]

    @given(st.lists(KNOWN_WORDS, max_size=6) | st.lists(ANY_WORDS, max_size=6))
    def property_of(sentence: list[str]) -> None:
        ids = codec.encode(sentence)
        assert ids.count(EOS) == 1
        assert ids[-1] == EOS
        assert all(EOS <= number < len(codec.vocabulary) for number in ids)
        owners = codec.word_of_piece(sentence)
        assert len(owners) == len(ids) - 1 == len(codec.pieces(sentence))
        assert sorted(owners) == owners
        assert set(owners) == set(range(len(sentence)))
        if kind == "bpe":
            known = set("".join(sentence)) <= set(ALPHABET)
            assert (UNK not in ids) >= known
            assert UNK in ids or codec.decode(ids) == [replace_mark(word) for word in sentence]

    property_of()


@given(
    st.lists(st.tuples(st.integers(1, 40), st.integers(1, 40)), min_size=1, max_size=40),
    st.booleans(), st.integers(1, 8), st.integers(1, 100), st.integers(1, 4),
    st.integers(0, 3),
)  # fmt: skip
def test_an_epoch_has_every_sentence_once(
    lengths: list[tuple[int, int]], by_sentences: bool, sentences: int, tokens: int, workers: int, epoch: int
) -> None:
    """All workers see the same batches and share them out in parts that fit, if every sentence alone fits.

    With batches by tokens, a worker may get one sentence more, to avoid a second pass.
    """
    more = 0 if by_sentences or workers == 1 else 1
    batching = Batching(by_sentences, sentences, tokens, workers)
    sides = [np.array(side, dtype=np.int64) for side in zip(*lengths, strict=True)]
    order = batching.order(sides[0], sides[1], seed=1, epoch=epoch)
    epochs = [batching.share(order, rank) for rank in range(workers)]
    seen = Counter[int]()
    for batches in zip(*epochs, strict=True):
        assert len({(batch.target_tokens, len(batch.whole)) for batch in batches}) == 1
        assert batches[0].target_tokens == sides[1][batches[0].whole].sum()
        for batch in batches:
            assert batch.parts
            for part in batch.parts:
                widest = max(sides[0][part].max(), sides[1][part].max())
                assert len(part) == 1 or widest * (len(part) - more) <= tokens
                seen.update(part.tolist() if batch.counted else [])
    assert seen == Counter(range(len(lengths)))
