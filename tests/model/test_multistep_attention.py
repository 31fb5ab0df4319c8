import math

import torch
from torch.testing import assert_close

from convs2s.model.multistep_attention import Memory, MultistepAttention, attend


def memory(keys: torch.Tensor, values: torch.Tensor, padding: torch.Tensor) -> Memory:
    return Memory(keys, values, padding, (~padding).sum(dim=1))


def test_padding_gets_no_weight_and_does_not_count_as_length() -> None:
    """With a padded position, m of the same sentence is still 2 (T8)."""
    values = torch.tensor([[[1.0], [3.0], [100.0]]])
    c, weights = attend(torch.zeros(1, 1, 1), memory(values, values, torch.tensor([[False, False, True]])))
    assert_close(weights, torch.tensor([[[0.5, 0.5, 0.0]]]))
    assert_close(c, torch.tensor([[[2.0 * math.sqrt(2)]]]))


def test_weights_are_the_softmax_of_the_dot_products() -> None:
    """Eq. 1 by hand: scores 0 and ln 3 give weights 1/4 and 3/4."""
    keys = torch.tensor([[[0.0], [math.log(3)]]])
    values = torch.tensor([[[4.0], [8.0]]])
    c, weights = attend(torch.ones(1, 1, 1), memory(keys, values, torch.zeros(1, 2, dtype=torch.bool)))
    assert_close(weights, torch.tensor([[[0.25, 0.75]]]))
    assert_close(c, torch.tensor([[[7.0 * math.sqrt(2)]]]))


def test_extra_scaling_multiplies_summary_and_sum_by_sqrt_half() -> None:
    """T4: with it, (W_c c + h) sqrt(0.5) where d = (W_d h + g) sqrt(0.5); without it, plain sums."""
    torch.manual_seed(1)
    scaled = MultistepAttention(4, 3, extra_scaling=True)
    literal = MultistepAttention(4, 3, extra_scaling=False)
    literal.load_state_dict(scaled.state_dict())
    h, g = torch.randn(1, 2, 4), torch.randn(1, 2, 3)
    source = memory(torch.randn(1, 5, 3), torch.randn(1, 5, 3), torch.zeros(1, 5, dtype=torch.bool))
    for attention, scale in ((scaled, math.sqrt(0.5)), (literal, 1.0)):
        c, _ = attend((attention.summary_map(h) + g) * scale, source)
        assert_close(attention(h, g, source)[0], (attention.context_map(c) + h) * scale)


def test_bfloat16_scales_by_the_square_root_in_float32() -> None:
    """T38: c is rounded once, after the product; rounding the square root first costs up to 0.4 %."""
    for m in range(1, 51):
        values = torch.full((1, m, 1), 1.1, dtype=torch.bfloat16)
        keys = torch.zeros(1, m, 1, dtype=torch.bfloat16)
        keys[0, 0] = 99.0  # all attention on one position
        no_padding = torch.zeros(1, m, dtype=torch.bool)
        c, _ = attend(torch.ones(1, 1, 1, dtype=torch.bfloat16), memory(keys, values, no_padding))
        exact = torch.tensor(values[0, 0, 0].item() * math.sqrt(m), dtype=torch.bfloat16)
        assert c.item() == exact.item()
