"""Names, shapes and weight norm of fairseq's tensors."""

import dataclasses

import pytest
import torch
from torch import Tensor
from torch.testing import assert_close

from convs2s.exchange.fairseq_files import Checkpoint
from convs2s.exchange.fairseq_import import build_model, describe_model
from convs2s.exchange.fairseq_weights import Layer, fold_norm, has_old_norm, order_ids
from convs2s.text.counted import counted
from tests.golden import FAIRSEQ_SIZES, NAMES, checkpoint
from tests.golden.judge import check_outputs

SIZES = (FAIRSEQ_SIZES["source"], FAIRSEQ_SIZES["target"])


def of_2017(name: str) -> Checkpoint:
    """Return a golden model as fairseq of 2017 would have saved it, by formula.

    There w[k] = g[k] v[k] / ||v[k]||, the norm over all channels of kernel position k, so v[k] can be any
    multiple of w[k], with g[k] = ||w[k]||.
    """
    new = checkpoint(name)
    tensors = {key: tensor for key, tensor in new.tensors.items() if key != "decoder.version"}
    for key in [
        key for key in tensors if key.startswith("decoder.convolutions") and key.endswith("weight_v")
    ]:
        g_name = key.replace("weight_v", "weight_g")
        g, v = tensors[g_name].double(), tensors[key].double()
        w = g * v / (v * v).sum(dim=(0, 1), keepdim=True).sqrt()
        tensors[g_name] = (w * w).sum(dim=(1, 2), keepdim=True).sqrt().float()
        factors = 0.3 + torch.arange(len(w))[:, None, None]
        tensors[key] = (w * factors).float()
    return dataclasses.replace(new, tensors=tensors)


def test_weight_norm_is_over_the_dimensions_that_g_lacks() -> None:
    """By hand: K = 2, one input, two outputs; norms 5, 13 by position, sqrt(34), sqrt(160) by output."""
    v = torch.tensor([[[3.0, 4.0]], [[5.0, 12.0]]])
    layer = Layer("x", "y", (2, 1, 2), (2, 1, 1))
    old = fold_norm({"x.weight_v": v, "x.weight_g": torch.tensor([[[10.0]], [[26.0]]])}, layer)
    # Rows are outputs, columns positions.
    assert_close(old, torch.tensor([[6.0, 10.0], [8.0, 24.0]]))
    new = fold_norm({"x.weight_v": v, "x.weight_g": torch.tensor([[[34.0**0.5, 160.0**0.5]]])}, layer)
    assert_close(new, torch.tensor([[3.0, 5.0], [4.0, 12.0]]))
    linear = fold_norm({"x.weight_v": v[:, 0], "x.weight_g": torch.tensor([[5.0], [26.0]])}, layer)
    assert_close(linear, torch.tensor([[3.0, 4.0], [10.0, 24.0]]))


@pytest.mark.parametrize("name", NAMES)
def test_the_weight_norm_of_2017_gives_the_same_model(name: str) -> None:
    """The varied model has kernel widths 3, 5 and 1 in its decoder."""
    old = of_2017(name)
    description = describe_model(old, SIZES)
    assert description.old_norm
    check_outputs(build_model(old, description), name)


def test_the_version_and_the_shape_of_g_distinguish_old_from_new() -> None:
    """A version below 2, or none, is old; a g per channel is new, whatever the version."""
    old, new = dict(of_2017("plain").tensors), dict(checkpoint("plain").tensors)
    assert has_old_norm(old)
    assert has_old_norm({**old, "decoder.version": torch.tensor([1.0])})
    assert not has_old_norm(new)
    del new["decoder.version"]
    assert not has_old_norm(new)


def test_half_precision_is_widened_first() -> None:
    """Checkpoints of fp16 training are in half precision, where norms would overflow."""
    v = torch.full((1, 4), 300.0, dtype=torch.float16)
    weight = fold_norm(
        {"x.weight_v": v, "x.weight_g": torch.tensor([[2.0]])}, Layer("x", "y", (1, 4), (1, 1))
    )
    assert_close(weight, torch.ones(1, 4))


def test_fairseqs_start_symbol_goes_last() -> None:
    """Our ids are padding, EOS, unknown, and then the entries in order (T20)."""
    assert order_ids(6).tolist() == [1, 2, 3, 4, 5, 0]


def test_a_tied_output_layer_is_the_target_embedding() -> None:
    """fairseq then saves no weight norm for it; logits are the plain product."""
    varied = checkpoint("varied", share_input_output_embed=True)
    tensors = {
        key: tensor for key, tensor in varied.tensors.items() if not key.startswith("decoder.fc3.weight")
    }
    tensors["decoder.fc3.weight"] = tensors["decoder.embed_tokens.weight"]
    tied = dataclasses.replace(varied, tensors=tensors)
    model = build_model(tied, describe_model(tied, SIZES))
    assert_close(model.output_layer.weight, model.target_embedding.words.weight)


def misfit(read: Checkpoint, sizes: tuple[int, int] = SIZES) -> list[str]:
    """Return the rows of the report, one for each tensor that does not fit."""
    with pytest.raises(ValueError, match="listed below, do not fit the checkpoint's arguments") as raised:
        build_model(read, describe_model(read, sizes))
    rows = list(raised.value.__notes__)
    assert f": {counted(len(rows), 'tensor')}, listed below" in str(raised.value)
    return rows


def test_every_difference_is_reported() -> None:
    """The report lists all tensors that are missing, unknown or of another shape, not just the first few."""
    read = checkpoint("plain", decoder_out_embed_dim=21)
    tensors: dict[str, Tensor] = dict(read.tensors)
    del tensors["encoder.fc2.bias"]
    tensors["decoder.selfattention.0.bias"] = torch.zeros(3)
    tensors["decoder.attention.1.in_projection.weight_v"] = torch.zeros(2, 2)
    assert misfit(dataclasses.replace(read, tensors=tensors)) == [
        "  decoder.attention.1.in_projection.weight_v: expected (24, 32), found (2, 2)",
        "  decoder.fc2.bias: expected (21,), found (20,)",
        "  decoder.fc2.weight_g: expected (21, 1), found (20, 1)",
        "  decoder.fc2.weight_v: expected (21, 32), found (20, 32)",
        "  decoder.fc3.weight_v: expected (376, 21), found (376, 20)",
        "  decoder.selfattention.0.bias: expected nothing, found (3,)",
        "  encoder.fc2.bias: expected (24,), found nothing",
    ]


def test_dictionaries_of_another_model_are_reported() -> None:
    """The dictionaries may have been swapped: each tensor with a row per vocabulary entry is listed."""
    rows = misfit(checkpoint("plain"), (SIZES[1], SIZES[0]))
    assert [row.split(":")[0].strip() for row in rows] == [
        "decoder.embed_tokens.weight",
        "decoder.fc3.bias",
        "decoder.fc3.weight_g",
        "decoder.fc3.weight_v",
        "encoder.embed_tokens.weight",
    ]
    assert rows[-1] == "  encoder.embed_tokens.weight: expected (376, 24), found (352, 24)"


def test_a_new_version_with_the_weight_norm_of_2017_does_not_fit() -> None:
    """fairseq does not load such a file either."""
    old = of_2017("plain")
    tensors = {**old.tensors, "decoder.version": torch.tensor([2.0])}
    assert misfit(dataclasses.replace(old, tensors=tensors)) == [
        f"  decoder.convolutions.{i}.weight_g: expected (1, 1, 64), found (3, 1, 1)" for i in (0, 1)
    ]


def test_missing_position_tables_are_reported() -> None:
    """Only the rows of these tables give the maximum sentence length."""
    plain = checkpoint("plain")
    tensors = {name: tensor for name, tensor in plain.tensors.items() if "positions" not in name}
    rows = misfit(dataclasses.replace(plain, tensors=tensors))
    assert [row.split(": ")[0] for row in rows] == [
        "  decoder.embed_positions.weight",
        "  encoder.embed_positions.weight",
    ]


def test_a_longer_position_table_is_cut() -> None:
    """Only the maximum sentence length changes."""
    plain = checkpoint("plain")
    table = plain.tensors["encoder.embed_positions.weight"]
    longer = {**plain.tensors, "encoder.embed_positions.weight": torch.cat([table, table[:5] + 1])}
    read = dataclasses.replace(plain, tensors=longer)
    check_outputs(build_model(read, describe_model(read, SIZES)), "plain")
