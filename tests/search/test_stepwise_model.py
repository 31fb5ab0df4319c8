"""Stepwise decoding, over all target tokens or a few, equals decoding all at once."""

from typing import Any

import pytest
import torch
from torch.testing import assert_close

from convs2s.search.stepwise_model import StepwiseModel
from tests.model.small import EOS, PAD, VARIANTS, sentence, small_model

SOME = torch.tensor([0, 1, 2, 7, 30, 49])


@pytest.mark.parametrize("chosen", [torch.arange(50), SOME], ids=["all tokens", "some tokens"])
@pytest.mark.parametrize("changes", VARIANTS)
def test_step_by_step_equals_all_at_once(changes: dict[str, Any], chosen: torch.Tensor) -> None:
    """Decoding shifts states and recomputes nothing (§5.3), for any layers that attend (§5.4)."""
    model = small_model(**changes).eval()
    stepwise = StepwiseModel(model).restrict(chosen)
    source = torch.stack([sentence(7, 40), torch.cat([sentence(5, 40), torch.tensor([PAD, PAD])])])
    places = torch.stack([torch.arange(8) % (len(chosen) - 1) + 1, torch.tensor([EOS, 5, 3, 3, 4, 2, 5, 2])])
    logits, weights = model(source, chosen[places])
    memory, state = stepwise.encode(source), stepwise.start(2)
    for i in range(8):
        step_logits, step_weights, state = stepwise.step(places[:, i], memory, state)
        assert_close(step_logits, logits[:, i, chosen], atol=1e-5, rtol=1e-5)
        assert_close(step_weights, weights[:, i], atol=1e-6, rtol=1e-5)
