import math
from typing import Any, cast

import pytest
import torch
from torch import nn

from convs2s.model.initialization import output_table
from convs2s.model.seq2seq import Seq2Seq
from tests.model.small import SMALL, small_params

DROPOUT = 0.2


def wide_model() -> Seq2Seq:
    """Build a model wide enough to measure the standard deviation of its weights to a few percent."""
    sizes = {"embedding_size": 192, "output_embedding_size": 160, "encoder_widths": [128, 256, 256]}
    params = small_params(**SMALL | sizes | {"decoder_widths": [128, 256, 256]})
    return Seq2Seq(params, 600, 700, 0, DROPOUT)


def std(layer: Any) -> float:
    return float(layer.weight.detach().std())


def test_initial_standard_deviations_follow_the_rule_for_every_kind_of_layer() -> None:
    """sqrt(p/n), or sqrt(4p/n) before a GLU, where p is the probability of keeping that input (§3.5)."""
    torch.manual_seed(1)
    model = wide_model()
    keep = 1 - DROPOUT
    encoder, decoder = model.encoder, model.decoder
    second, block = cast(Any, encoder.blocks[1]), cast(Any, decoder.blocks[2])
    wanted: dict[Any, float] = {
        encoder.input_map: math.sqrt(keep / 192),  # embeddings are dropped
        second.convolution.window_map: math.sqrt(4 * keep / (5 * 128)),
        second.residual.map: math.sqrt(1 / 128),  # no dropout on the residual path (T2)
        encoder.output_map: math.sqrt(1 / 256),
        decoder.input_map: math.sqrt(keep / 192),
        block.convolution.window_map: math.sqrt(4 * keep / 256),
        block.attention.summary_map: math.sqrt(1 / 256),
        block.attention.context_map: math.sqrt(1 / 192),
        decoder.output_map: math.sqrt(1 / 256),
        model.output_layer: math.sqrt(keep / 160),  # the decoder output is dropped
        model.source_embedding.words: 0.1,
    }
    for layer, deviation in wanted.items():
        assert std(layer) == pytest.approx(deviation, rel=0.03)
    assert float(model.target_embedding.positions.weight[1:].detach().std()) == pytest.approx(0.1, rel=0.1)  # type: ignore[union-attr]


def test_biases_and_padding_rows_are_zero_and_weight_norm_starts_as_the_identity() -> None:
    """g starts at ||v||, so w = v (§4.2), in all but lookup tables (T17); padding has no vector (T18)."""
    model = wide_model()
    for name, parameter in model.named_parameters():
        if name.endswith("bias"):
            assert parameter.abs().max() == 0
    assert model.source_embedding.words.weight[0].abs().max() == 0
    for module in model.modules():
        if isinstance(module, nn.Linear):
            g, v = cast(Any, module).parametrizations.weight.parameters()
            torch.testing.assert_close(g.flatten(), v.norm(dim=1))
            torch.testing.assert_close(module.weight, v)
        if isinstance(module, nn.Embedding):
            assert not hasattr(module, "parametrizations")


def test_variance_is_roughly_preserved_through_a_deep_encoder() -> None:
    """§3.4 and §3.5 together: 20 blocks neither blow up nor kill a signal of embedding size."""
    torch.manual_seed(5)
    params = small_params(
        embedding_size=128, encoder_widths=[128] * 20, encoder_kernels=[3] * 20, source_positions=False
    )
    model = Seq2Seq(params, 500, 500, 0, 0.0).eval()
    e = 0.1 * torch.randn(8, 30, 128)
    with torch.no_grad():
        z, _ = model.encoder(e, None)
    assert 0.3 < float(z.var() / e.var()) < 3.0


def test_an_output_table_is_drawn_from_n_0_01_without_weight_norm() -> None:
    """T16: with vocabulary selection the output layer is a lookup table with a bias column."""
    table = output_table(200, 300)
    assert [name for name, _ in table.named_parameters()] == ["weight", "bias"]
    assert float(table.weight.detach().std()) == pytest.approx(0.1, rel=0.02)
    assert float(table.bias.detach().std()) == pytest.approx(0.1, rel=0.2)
