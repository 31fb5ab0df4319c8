"""The arguments of a fairseq `fconv` model -> our architecture (T2, T4, T6, T18)."""

import ast
import reprlib
from typing import Any

from convs2s.config.faults import validate
from convs2s.config.model import MOST_LAYERS, ModelParams
from convs2s.fairseq.files import Checkpoint


def read_architecture(checkpoint: Checkpoint) -> ModelParams:
    """Return the architecture of an fconv model.

    Where fairseq departs from the paper, the architecture follows fairseq: sqrt(0.5) also on d, z + e and
    c + h (T4), and gradient scaling that includes the encoder's embeddings (T6).
    """
    arguments, tensors = checkpoint.arguments, checkpoint.tensors
    encoder, decoder = parse_layers(checkpoint, "encoder_layers"), parse_layers(checkpoint, "decoder_layers")
    attention = str(arguments.get("decoder_attention", True))  # absent in the first releases
    tables = [tensor for name, tensor in tensors.items() if name.endswith("embed_positions.weight")]
    architecture = {
        "embedding_size": arguments.get("decoder_embed_dim"),
        "output_embedding_size": arguments.get("decoder_out_embed_dim"),
        "encoder_widths": [width for width, _ in encoder],
        "encoder_kernels": [kernel for _, kernel in encoder],
        "decoder_widths": [width for width, _ in decoder],
        "decoder_kernels": [kernel for _, kernel in decoder],
        "attention": attention == "True" or evaluate_list(attention),
        "source_positions": True,
        "target_positions": True,
        # Only the tables give it reliably. T18: fairseq's positions start at row 2, ours at row 1.
        "max_positions": min((len(table) for table in tables if table.ndim), default=0) - 1,
        "encoder_grad_scale": "fairseq",
        "extra_scaling": True,
    }
    return validate(ModelParams, architecture, f"{checkpoint.path}, arguments: impossible architecture")


def parse_layers(checkpoint: Checkpoint, name: str) -> list[tuple[int, int]]:
    """Return (channels, kernel width) of each layer, from text such as "[(512, 3)] * 4 + [(768, 3)]".

    A third number would be the distance to the layer from which the residual comes: 1, the default, is the
    layer's own input, the only residual that our model has (T2).
    """
    layers = evaluate_list(str(checkpoint.arguments.get(name)))
    try:
        if any(residual != 1 for layer in layers for residual in layer[2:]):
            raise ValueError
        return [(layer[0], layer[1]) for layer in layers]
    except (TypeError, ValueError, LookupError) as error:
        raise ValueError(
            f"{checkpoint.path}, arguments: expected {name} of an fconv model, such as '[(512, 3)] * 4', "
            f"each layer's residual being its own input; found {reprlib.repr(layers)} in a model of the "
            f"architecture {reprlib.repr(checkpoint.arguments.get('arch'))}."
        ) from error


def evaluate_list(text: str) -> Any:
    """Return the list that text spells: lists of literals, repeated by * and joined by +; else the text.

    fairseq evaluates such text in checkpoints as Python; nothing is executed here.
    """
    values = list[Any]()
    try:
        for part in text.split("+"):
            items, _, times = part.partition("*")
            read = ast.literal_eval(items.strip())
            if not isinstance(read, list | tuple):
                return text
            repetitions = int(times or 1)
            for _ in range(repetitions if read else 0):
                values += read
                if len(values) > MOST_LAYERS:  # a number such as 10 ** 9 must not fill memory
                    return text
    except (TypeError, ValueError, SyntaxError, RecursionError, MemoryError):  # the last: nested too deeply
        return text
    return values
