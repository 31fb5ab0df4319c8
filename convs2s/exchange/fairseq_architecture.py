"""The arguments of a fairseq `fconv` model -> our architecture (T2, T4, T6, T18)."""

import ast
from collections.abc import Mapping
from typing import Any

from convs2s.base.messages import inflect
from convs2s.config.faults import validate
from convs2s.config.model import ModelParams
from convs2s.exchange.fairseq_files import Checkpoint

MOST_LAYERS = 10_000


def read_architecture(checkpoint: Checkpoint) -> ModelParams:
    """Return the architecture of an fconv model.

    Where fairseq departs from the paper, the architecture follows fairseq: sqrt(0.5) also on d, z + e and
    c + h (T4), and gradient scaling that includes the encoder's embeddings (T6).

    Raises:
        ValueError: if an argument is missing, or requires a feature that our model lacks.
    """
    arguments, origin = checkpoint.arguments, f"{checkpoint.path}, arguments"
    encoder = read_layers(arguments, "encoder_layers", origin)
    decoder = read_layers(arguments, "decoder_layers", origin)
    source, target = arguments.get("encoder_embed_dim"), arguments.get("decoder_embed_dim")
    if source != target:
        raise ValueError(
            f"{origin}: encoder_embed_dim is {source} but decoder_embed_dim is {target}; expected the same, "
            "because the attention takes dot products of the two."
        )
    architecture = {
        "embedding_size": target,
        "output_embedding_size": arguments.get("decoder_out_embed_dim"),
        "encoder_widths": [width for width, _ in encoder],
        "encoder_kernels": [kernel for _, kernel in encoder],
        "decoder_widths": [width for width, _ in decoder],
        "decoder_kernels": [kernel for _, kernel in decoder],
        "attention": read_attention(arguments, len(decoder), origin),
        "source_positions": True,
        "target_positions": True,
        "max_positions": min(position_rows(checkpoint)) - 1,  # T18: fairseq's start at row 2, ours at row 1
        "encoder_grad_scale": "fairseq",
        "extra_scaling": True,
    }
    return validate(ModelParams, architecture, f"{origin} has an impossible architecture")


def read_layers(arguments: Mapping[str, Any], name: str, origin: str) -> list[tuple[int, int]]:
    """Return (channels, kernel width) of each layer, from text such as "[(512, 3)] * 4 + [(768, 3)]"."""
    layers = literal(arguments.get(name))
    if not isinstance(layers, list) or not layers or not all(map(is_layer, layers)):
        raise ValueError(
            f"{origin}: expected {name} of an fconv model, such as '[(512, 3)] * 4', found "
            f"{arguments.get(name)!r} in a model of the architecture {arguments.get('arch')!r}."
        )
    for layer in layers:
        if len(layer) == 3 and layer[2] != 1:
            raise ValueError(
                f"{origin}: {name} has the layer {layer}, whose residual comes from {layer[2]} layers below; "
                "expected 1, its own input, the only residual that our model has (T2)."
            )
    return [(layer[0], layer[1]) for layer in layers]


def is_layer(layer: Any) -> bool:
    """Return whether this is (channels, kernel width), with or without a residual."""
    return isinstance(layer, tuple | list) and len(layer) in (2, 3) and {*map(type, layer)} == {int}


def read_attention(arguments: Mapping[str, Any], layers: int, origin: str) -> list[bool]:
    """Return which decoder layers attend, from one flag for all or one for each."""
    flags = literal(arguments.get("decoder_attention", True))
    if isinstance(flags, bool):
        return [flags] * layers
    if isinstance(flags, list | tuple) and len(flags) == layers and {*map(type, flags)} == {bool}:
        return list(flags)
    raise ValueError(
        f"{origin}: expected decoder_attention to be True, or a list of {inflect(layers, 'flag')}, one per "
        f"layer; found {arguments['decoder_attention']!r}."
    )


def position_rows(checkpoint: Checkpoint) -> tuple[int, int]:
    """Return the rows of the source and the target position table, which only the tables give reliably.

    A missing table counts as having fairseq's default of 1,024 rows; the report on shapes names it.
    """
    names = ("encoder.embed_positions.weight", "decoder.embed_positions.weight")
    source, target = (len(checkpoint.tensors.get(name, range(1024))) for name in names)
    return source, target


def literal(value: Any) -> Any:
    """Return a value that text spells as literals, their sums and products; None for any other text.

    Checkpoints contain such text, which fairseq evaluates as Python; nothing is executed here. Newer ones
    contain the values themselves.
    """
    if not isinstance(value, str):
        return value
    try:
        return value_of(ast.parse(value.strip(), mode="eval").body)
    except (SyntaxError, ValueError, TypeError, RecursionError, MemoryError):
        return None


def value_of(node: ast.expr) -> Any:
    """Return the value of a node; raise ValueError or TypeError if it is anything else, or too long."""
    match node:
        case ast.Constant(value=bool() | int() as value):
            return value
        case ast.List(elts=items):
            return [value_of(item) for item in items]
        case ast.Tuple(elts=items):
            return tuple(map(value_of, items))
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return value_of(left) + value_of(right)
        case (
            ast.BinOp(left=ast.Constant(value=int() as times), op=ast.Mult(), right=repeated)
            | ast.BinOp(left=repeated, op=ast.Mult(), right=ast.Constant(value=int() as times))
        ):
            items = value_of(repeated)
            if len(items) * times <= MOST_LAYERS:
                return items * times
    raise ValueError("not a literal")
