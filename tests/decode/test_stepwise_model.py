"""Stepwise decoding, over all target tokens or a few, equals decoding all at once."""

import pytest
import torch
from torch.testing import assert_close

from convs2s.decode.stepwise_model import StepwiseModel
from tests.model.small import PAD, sentence, small_model


@pytest.mark.parametrize("positions", [True, False])
@pytest.mark.parametrize("attention", [[True, True, True], [False, True, False], [False, False, True]])
def test_step_by_step_equals_all_at_once(positions: bool, attention: list[bool]) -> None:
    """Decoding shifts states and recomputes nothing (§5.3), for any layers that attend."""
    model = small_model(attention=attention, source_positions=positions, target_positions=positions).eval()
    stepwise = StepwiseModel(model)
    source = torch.stack([sentence(7, 40), torch.cat([sentence(5, 40), torch.tensor([PAD, PAD])])])
    target = torch.stack([sentence(8, 50), sentence(8, 50, start=9)])
    logits, weights = model(source, target)
    memory, state = stepwise.encode(source), stepwise.start(2)
    for i in range(8):
        step_logits, step_weights, state = stepwise.step(target[:, i], memory, state)
        assert_close(step_logits, logits[:, i], atol=1e-5, rtol=1e-5)
        assert_close(step_weights, weights[:, i], atol=1e-6, rtol=1e-5)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_model_over_some_tokens_is_the_model_with_these_rows(dtype: torch.dtype) -> None:
    """The numbers equal, to the last bit, those of a full model whose tables were cut by hand (§5.4)."""
    model, chosen = small_model().eval().to(dtype), torch.tensor([0, 1, 2, 7, 30, 49])
    by_hand = small_model().eval().to(dtype)
    by_hand.load_state_dict(model.state_dict())
    by_hand.target_embedding.words = torch.nn.Embedding(
        6, 12, _weight=model.target_embedding.words.weight[chosen]
    )
    by_hand.output_layer = torch.nn.Linear(10, 6, dtype=dtype)
    with torch.no_grad():
        by_hand.output_layer.weight.copy_(model.output_layer.weight[chosen])
        by_hand.output_layer.bias.copy_(model.output_layer.bias[chosen])
    few, wanted = StepwiseModel(model).restricted(chosen), StepwiseModel(by_hand)
    source = torch.stack([sentence(6, 40), sentence(6, 40, start=3)])
    states = few.start(4), wanted.start(4)
    for tokens in ([1, 1, 1, 1], [3, 5, 4, 2], [5, 5, 3, 2]):
        rows = torch.tensor(tokens)
        logits, attention, state = few.step(rows, few.encode(source), states[0])
        other_logits, other_attention, other_state = wanted.step(rows, wanted.encode(source), states[1])
        assert torch.equal(logits, other_logits)
        assert torch.equal(attention, other_attention)
        states = state, other_state
    assert few.seq2seq is model
