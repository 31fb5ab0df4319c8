"""Any epoch of any corpus has every sentence once."""

from collections import Counter

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from convs2s.ids.batching import Batching


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
