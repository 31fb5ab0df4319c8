"""fairseq's arguments become our architecture, its tensors our weights."""

import dataclasses
import re
from typing import Any
from unittest import mock

import pytest
import torch
from torch import Tensor
from torch.testing import assert_close

from convs2s.fairseq import importer
from convs2s.fairseq.architecture import read_architecture
from convs2s.fairseq.files import Checkpoint
from convs2s.fairseq.importer import convert_model
from convs2s.fairseq.weights import fold_norm
from convs2s.model.seq2seq import Seq2Seq
from tests.golden import FAIRSEQ_SIZES, NAMES, checkpoint
from tests.golden.judge import check_outputs

SIZES = (FAIRSEQ_SIZES["source"], FAIRSEQ_SIZES["target"])


def build(read: Checkpoint, tensors: dict[str, Tensor], sizes: tuple[int, int] = SIZES) -> Seq2Seq:
    read = dataclasses.replace(read, tensors=tensors)
    return convert_model(read, read_architecture(read), sizes)


def test_arguments_become_our_sizes_and_choices() -> None:
    """fairseq's departures from the paper are kept: T4 as `extra_scaling`, T6 as `encoder_grad_scale`.

    The first releases had no decoder_attention argument; all layers attended.
    """
    plain = checkpoint("plain")
    assert read_architecture(plain).attention == [True, True]
    old = {name: value for name, value in plain.arguments.items() if name != "decoder_attention"}
    assert read_architecture(dataclasses.replace(plain, arguments=old)).attention == [True, True]
    assert read_architecture(checkpoint("varied")).model_dump(exclude_defaults=True) == {
        "embedding_size": 24,
        "output_embedding_size": 24,
        "encoder_widths": [32, 48, 64],
        "encoder_kernels": [3, 3, 1],
        "decoder_widths": [32, 48, 64],
        "decoder_kernels": [3, 5, 1],
        "attention": [True, False, True],
        "source_positions": True,
        "target_positions": True,
        "max_positions": 63,  # 64 rows, the first two of which are never a position (T18)
        "encoder_grad_scale": "fairseq",
        "extra_scaling": True,
    }


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"arch": "transformer", "encoder_layers": 6}, "found '6' in a model of the .* 'transformer'"),
        ({"encoder_layers": "__import__('os').getcwd()"}, r"encoder_layers .*found \"__import__"),
        ({"encoder_layers": "(" * 9999 + ")" * 9999}, r"encoder_layers .*found '\(\("),
        ({"encoder_layers": "'a' * 999"}, r"encoder_layers .*found \"'a' \* 999"),
        ({"encoder_layers": "[(32, 3)] * 9999999999999"}, r"encoder_layers .*found '\[\(32, 3\)\] \*"),
        ({"encoder_layers": [32, 3]}, r"encoder_layers .*found \[32, 3\]"),
        ({"decoder_embed_dim": "24"}, "embedding_size: expected an integer, found '24'"),
        ({"decoder_embed_dim": 24.0}, "embedding_size: expected an integer, found 24.0"),
        ({"decoder_out_embed_dim": True}, "output_embedding_size: expected an integer, found true"),
        ({"decoder_out_embed_dim": float("nan")}, "output_embedding_size: expected an integer, found nan"),
        ({"decoder_layers": "[('32', 3), (32, 3)]"}, "decoder_widths.0: expected an integer, found '32'"),
        ({"decoder_attention": "[1, 0]"}, "attention.0: expected true or false, found 1"),
        ({"decoder_layers": "[(32, 3), (32, 3, 2)]"}, "its own input; found .*32, 3, 2"),
        ({"decoder_attention": "False"}, "attention: expected a list, found 'False'"),
    ],
)
def test_arguments_that_our_model_lacks_are_named(changes: dict[str, Any], message: str) -> None:
    """Layers are Python expressions, which fairseq evaluates."""
    with pytest.raises(ValueError, match=f"(?s)plain.pt, arguments.*{message}"):
        read_architecture(checkpoint("plain", **changes))


def test_weight_norm_is_over_the_dimensions_that_g_lacks() -> None:
    """By hand: K = 2, one input, two outputs; norms 5, 13 by position, sqrt(34), sqrt(160) by output."""
    v = torch.tensor([[[3.0, 4.0]], [[5.0, 12.0]]])
    # Rows are outputs, columns positions.
    old = fold_norm(torch.tensor([[[10.0]], [[26.0]]]), v)
    assert_close(old, torch.tensor([[6.0, 10.0], [8.0, 24.0]]))
    new = fold_norm(torch.tensor([[[34.0**0.5, 160.0**0.5]]]), v)
    assert_close(new, torch.tensor([[3.0, 5.0], [4.0, 12.0]]))
    linear = fold_norm(torch.tensor([[5.0], [26.0]]), v[:, 0])
    assert_close(linear, torch.tensor([[3.0, 4.0], [10.0, 24.0]]))
    half = torch.full((1, 4), 4e4, dtype=torch.float16)  # from fp16 training, with too large a norm
    assert_close(fold_norm(torch.tensor([[2.0]]), half), torch.ones(1, 4))


@pytest.mark.parametrize("name", NAMES)
def test_the_weight_norm_of_2017_gives_the_same_model(name: str) -> None:
    """There w[k] = g[k] v[k] / ||v[k]||, the norm over all channels of kernel position k.

    So v[k] can be any multiple of w[k], with g[k] = ||w[k]||. The varied model has kernel widths 3, 5 and 1
    in its decoder. A longer position table only changes the maximum sentence length.
    """
    read = checkpoint(name)
    old = dict(read.tensors)
    for key in [key for key in old if re.match(r"decoder\.convolutions.*weight_v", key)]:
        g_name = key.replace("weight_v", "weight_g")
        g, v = old[g_name].double(), old[key].double()
        w = g * v / (v * v).sum(dim=(0, 1), keepdim=True).sqrt()
        old[g_name] = (w * w).sum(dim=(1, 2), keepdim=True).sqrt().float()
        old[key] = (w * (0.3 + torch.arange(len(w))[:, None, None])).float()
    table = old["encoder.embed_positions.weight"]
    old["encoder.embed_positions.weight"] = torch.cat([table, table[:5] + 1])
    check_outputs(build(read, old), name)


def test_a_tied_output_layer_is_the_target_embedding() -> None:
    """fairseq then saves no weight norm for it; logits are the plain product."""
    tied = checkpoint("varied", share_input_output_embed=True)
    tensors = {name: tensor for name, tensor in tied.tensors.items() if "decoder.fc3.weight" not in name}
    tensors["decoder.fc3.weight"] = tensors["decoder.embed_tokens.weight"]
    model = build(tied, tensors)
    assert_close(model.output_layer.weight, model.target_embedding.words.weight)


def test_tensors_that_do_not_fit_are_refused() -> None:
    """They may be from other dictionaries, or from a model with more layers than its arguments say."""
    read = checkpoint("plain")
    with pytest.raises(ValueError, match=r"(?s)plain.pt .* of 376 and 376 entries .* for source_embedding"):
        build(read, dict(read.tensors), (376, 376))
    with pytest.raises(ValueError, match=r"(?s)plain.pt .*Unexpected key.*decoder.selfattention.0.bias"):
        build(read, {**read.tensors, "decoder.selfattention.0.bias": torch.zeros(3)})


def test_names_of_wrappers_are_taken_off() -> None:
    """DataParallel, torch.compile and PyTorch's newer weight norm add their own names to those of tensors."""
    read = checkpoint("plain")
    wrapped = {f"_orig_mod.module.{name}": tensor for name, tensor in read.tensors.items()}
    for end, new in (("weight_g", "original0"), ("weight_v", "original1")):
        wrapped = {name.replace(end, f"parametrizations.weight.{new}"): wrapped[name] for name in wrapped}
    check_outputs(build(read, wrapped), "plain")


BIAS = "decoder.fc3.bias"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({f"module.{BIAS}": torch.zeros(376)}, f"one tensor for each name, found {BIAS} and module.{BIAS}"),
        (
            {"decoder.fc3.weight": torch.zeros(376, 20)},
            "one tensor for each weight, found decoder.fc3.weight.* and decoder.fc3.weight",
        ),
        (
            {"decoder.fc9.weight_g": torch.ones(3, 1)},
            "expected a weight_v for decoder.fc9.weight_g, found none",
        ),
        (
            {"decoder.fc9.weight_v": torch.ones(3, 1)},
            "expected a tensor decoder.fc9.weight_g for decoder.fc9.w",
        ),
        (
            {BIAS: torch.full((376,), float("nan"))},
            f"expected finite floating-point numbers in {BIAS}, found others",
        ),
        (
            {BIAS: torch.full((376,), float("inf"))},
            f"expected finite floating-point numbers in {BIAS}, found others",
        ),
        (
            {BIAS: torch.ones(376, dtype=torch.int8)},
            f"expected finite floating-point numbers in {BIAS}, found others",
        ),
        ({BIAS: torch.ones(2)}, rf"at least 4 rows in {BIAS}, found the shape \(2,\)"),
        ({BIAS: torch.tensor(1.0)}, rf"at least 4 rows in {BIAS}, found the shape \(\)"),
        ({"encoder.embed_positions.weight": torch.tensor(1.0)}, "at least 4 rows in encoder.embed_positions"),
        ({"decoder.fc3.weight_g": torch.ones(376)}, r"norms of shape \(376,\) for \(376, 20\)"),
        ({"decoder.fc3.weight_g": torch.ones(376, 20)}, r"norms of shape \(376, 20\) for \(376, 20\)"),
        (
            {"decoder.fc3.weight_g": torch.ones(60_000, 1), "decoder.fc3.weight_v": torch.ones(1, 60_000)},
            r"norms of shape \(60000, 1\) for \(1, 60000\)",
        ),
    ],
)
def test_tensors_that_would_be_lost_or_invented_are_refused(changes: dict[str, Tensor], message: str) -> None:
    """Of two tensors with one name, the last would win. A norm alone would need an invented direction."""
    read = checkpoint("plain")
    with pytest.raises(ValueError, match=f"plain.pt has different tensors .*{message}"):
        build(read, {**read.tensors, **changes})


def test_too_little_memory_is_not_another_model(monkeypatch: pytest.MonkeyPatch) -> None:
    """The caller then has advice on memory, not on dictionaries."""
    error = RuntimeError(
        "[enforce fail] DefaultCPUAllocator: can't allocate memory: you tried to allocate 9 bytes."
    )
    monkeypatch.setattr(importer, "convert_weights", mock.Mock(side_effect=error))
    with pytest.raises(RuntimeError) as raised:
        build(checkpoint("plain"), dict(checkpoint("plain").tensors))
    assert raised.value is error
