"""fairseq's arguments become our architecture."""

import dataclasses
from typing import Any

import pytest

from convs2s.exchange.fairseq_architecture import literal, read_architecture
from tests.golden import checkpoint


def test_arguments_become_our_sizes_and_choices() -> None:
    """fairseq's departures from the paper are kept: T4 as `extra_scaling`, T6 as `encoder_grad_scale`.

    The first releases had no decoder_attention argument; all layers attended.
    """
    plain = checkpoint("plain")
    assert read_architecture(plain).attention == [True, True]
    old = {name: value for name, value in plain.arguments.items() if name != "decoder_attention"}
    assert read_architecture(dataclasses.replace(plain, arguments=old)).attention == [True, True]
    assert read_architecture(checkpoint("varied")).model_dump() == {
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
    ("text", "value"),
    [
        ("[(512, 3)] * 2 + [(768, 1)]", [(512, 3), (512, 3), (768, 1)]),
        (" 2 * [(4, 3, 1)]", [(4, 3, 1), (4, 3, 1)]),
        ("[True, False]", [True, False]),
        ("__import__('os').getcwd()", None),
        ("[(4, 3)] * 9999999999", None),
        ("(" * 1000 + ")" * 1000, None),
        ([(4, 3)], [(4, 3)]),
        ("1 + [2]", None),
    ],
)
def test_only_literals_sums_and_products_have_a_value(text: str, value: object) -> None:
    """fairseq evaluates this text from the checkpoint as Python, so it could hold anything."""
    assert literal(text) == value


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"arch": "transformer", "encoder_layers": 6},
            "expected encoder_layers of an fconv model, .* found 6 in a model of the .* 'transformer'",
        ),
        ({"encoder_layers": "[(32, True)]"}, "expected encoder_layers"),
        ({"decoder_layers": "[(32, 3), (32, 3, 2)]"}, "residual comes from 2 layers below; expected 1"),
        ({"decoder_out_embed_dim": "20"}, "output_embedding_size: .*'20'"),
        ({"encoder_embed_dim": 20}, "encoder_embed_dim is 20 but decoder_embed_dim is 24; expected the same"),
        ({"decoder_attention": "[True]"}, r"expected decoder_attention to be True, or a list of 2 flags"),
        ({"decoder_attention": "False"}, "expected attention in some block"),
        ({"encoder_layers": "[(32, 4)]"}, "expected odd encoder_kernels, .* found the even width 4"),
    ],
)
def test_arguments_that_our_model_lacks_are_named(changes: dict[str, Any], message: str) -> None:
    """The error names the argument, what was expected and what was found."""
    with pytest.raises(ValueError, match=f"(?s)plain.pt, arguments.*{message}"):
        read_architecture(checkpoint("plain", **changes))
