"""Names, shapes and weight norm of fairseq's tensors."""

import dataclasses
import re

import pytest
import torch
from torch import Tensor
from torch.testing import assert_close

from convs2s.exchange.fairseq_files import Checkpoint
from convs2s.exchange.fairseq_import import build_model, describe_model
from convs2s.exchange.fairseq_weights import Layer, fold_norm, has_old_norm
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
    for key in [key for key in tensors if re.match(r"decoder\.convolutions.*weight_v", key)]:
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
    half = torch.full((1, 4), 4e4, dtype=torch.float16)  # from fp16 training, with too large a norm
    weights = {"x.weight_v": half, "x.weight_g": torch.tensor([[2.0]])}
    assert_close(fold_norm(weights, Layer("x", "y", (1, 4), (1, 1))), torch.ones(1, 4))


@pytest.mark.parametrize("name", NAMES)
def test_the_weight_norm_of_2017_gives_the_same_model(name: str) -> None:
    """The varied model has kernel widths 3, 5 and 1 in its decoder.

    A version below 2, or none, is old; a g per channel is new, whatever the version.
    """
    old, new = of_2017(name), dict(checkpoint(name).tensors)
    assert has_old_norm({**old.tensors, "decoder.version": torch.tensor([1.0])})
    assert not has_old_norm(new)
    del new["decoder.version"]
    assert not has_old_norm(new)
    description = describe_model(old, SIZES)
    assert description.old_norm
    check_outputs(build_model(old, description), name)


def test_a_tied_output_layer_is_the_target_embedding() -> None:
    """fairseq then saves no weight norm for it; logits are the plain product."""
    tied = checkpoint("varied", share_input_output_embed=True)
    tensors = dict(tied.tensors)
    del tensors["decoder.fc3.weight_g"], tensors["decoder.fc3.weight_v"]
    tensors["decoder.fc3.weight"] = tensors["decoder.embed_tokens.weight"]
    tied = dataclasses.replace(tied, tensors=tensors)
    model = build_model(tied, describe_model(tied, SIZES))
    assert_close(model.output_layer.weight, model.target_embedding.words.weight)


@pytest.mark.parametrize(
    ("changes", "sizes", "message"),
    [
        ({}, (376, 376), "dictionaries that it was trained with, source first; these have 376 and 376"),
        (
            {"decoder.selfattention.0.bias": torch.zeros(3)},
            SIZES,
            "1 tensor .* decoder.selfattention.0.bias: ",
        ),
        (
            {"encoder.fc2.bias": torch.zeros(9)},
            SIZES,
            r"first encoder.fc2.bias: expected \(24,\), found \(9,\)",
        ),
    ],
)
def test_tensors_that_do_not_fit_are_refused(
    changes: dict[str, Tensor], sizes: tuple[int, int], message: str
) -> None:
    """In one line: how many, the first one, and what to do."""
    read = checkpoint("plain")
    read = dataclasses.replace(read, tensors={**read.tensors, **changes})
    with pytest.raises(ValueError, match=message):
        build_model(read, describe_model(read, sizes))


def test_a_longer_position_table_is_cut() -> None:
    """Only the maximum sentence length changes."""
    plain = checkpoint("plain")
    table = plain.tensors["encoder.embed_positions.weight"]
    longer = {**plain.tensors, "encoder.embed_positions.weight": torch.cat([table, table[:5] + 1])}
    read = dataclasses.replace(plain, tensors=longer)
    check_outputs(build_model(read, describe_model(read, SIZES)), "plain")
