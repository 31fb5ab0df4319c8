"""The arguments of a fairseq `fconv` model -> our architecture (T2, T4, T6, T18)."""

import ast
from collections.abc import Mapping
from typing import Any

from convs2s.base.messages import inflect
from convs2s.config.faults import validate
from convs2s.config.model import ModelParams
from convs2s.exchange.fairseq_files import Checkpoint

MOST_LAYERS = 10_000
USUAL_ROWS = 1024  # of a position table


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
    """Return (channels, kernel width) of each layer, from text such as "[(512, 3)] * 4 + [(768, 3)]".

    Raises:
        ValueError: if there are no layers, or the residual of one is not its own input (T2).
    """
    value = arguments.get(name)
    layers = literal(value) if isinstance(value, str) else value
    if not isinstance(layers, list) or not layers or not all(map(is_layer, layers)):
        raise ValueError(
            f"{origin}: expected {name} of an fconv model, such as '[(512, 3)] * 4', found {value!r} in a "
            f"model of the architecture {arguments.get('arch')!r}."
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
    value = arguments.get("decoder_attention", True)
    flags = literal(value) if isinstance(value, str) else value
    if isinstance(flags, bool):
        return [flags] * layers
    if isinstance(flags, list | tuple) and len(flags) == layers and all(isinstance(f, bool) for f in flags):
        return list(flags)
    raise ValueError(
        f"{origin}: expected decoder_attention to be True, or a list of {inflect(layers, 'flag')}, one per "
        f"layer; found {value!r}."
    )


def position_rows(checkpoint: Checkpoint) -> tuple[int, int]:
    """Return the rows of the source and the target position table, which only the tables give reliably.

    A missing table counts as having the usual length; the shape report names it.
    """
    names = [f"{half}.embed_positions.weight" for half in ("encoder", "decoder")]
    tables = [checkpoint.tensors.get(name) for name in names]
    rows = [USUAL_ROWS if table is None else len(table) for table in tables]
    return rows[0], rows[1]


def literal(text: str) -> Any:
    """Return the value of literals, their sums and their products with a number; None for anything else.

    Checkpoints contain such text, which fairseq evaluates as Python; nothing is executed here.
    """
    try:
        return value_of(ast.parse(text.strip(), mode="eval").body)
    except (SyntaxError, ValueError, TypeError, RecursionError, MemoryError):
        return None


def value_of(node: ast.expr) -> Any:
    """Return the value of a node; raise ValueError if it is anything else, or too long."""
    match node:
        case ast.Constant(value=bool() | int() as value):
            return value
        case ast.List(elts=items):
            return [value_of(item) for item in items]
        case ast.Tuple(elts=items):
            return tuple(value_of(item) for item in items)
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return value_of(left) + value_of(right)
        case ast.BinOp(left=left, op=ast.Mult(), right=right):
            first, second = value_of(left), value_of(right)
            if isinstance(first, int):
                first, second = second, first
            known = isinstance(first, list) and isinstance(second, int)
            if not known or len(first) * second > MOST_LAYERS:
                raise ValueError("not a list times a number")
            return first * second
    raise ValueError("not a literal")
