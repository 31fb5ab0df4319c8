"""A search takes no more memory for scores than the sizes of a GPU's batches count with."""

import pytest
import torch

from benchmarks.memory import bytes_per_score
from convs2s.decode.batches import MEMBER_BYTES, SCORE_BYTES


@pytest.mark.parametrize("members", [1, 3, 8])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_score_takes_as_many_bytes_as_batches_count(members: int, dtype: torch.dtype) -> None:
    """Beyond what a step has besides scores; of one model it is four bytes less."""
    found = bytes_per_score(members, 20_000, dtype)
    counted = SCORE_BYTES + (MEMBER_BYTES * members if members > 1 else 0)
    assert found == pytest.approx(counted, abs=0.2)
