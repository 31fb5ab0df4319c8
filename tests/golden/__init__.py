"""Golden outputs of real fairseq models, and those models in our shape."""

from functools import cache
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from convs2s.config import ModelParams
from convs2s.model.initialization import fold_weight_norm
from convs2s.model.seq2seq import Seq2Seq

NAMES = ("plain", "varied")
ARCHITECTURES = {
    "plain": {
        "embedding_size": 24,
        "output_embedding_size": 20,
        "encoder_widths": [32, 32, 32],
        "encoder_kernels": [3, 3, 3],
        "decoder_widths": [32, 32],
        "decoder_kernels": [3, 3],
        "attention": [True, True],
    },
    "varied": {
        "embedding_size": 24,
        "output_embedding_size": 24,
        "encoder_widths": [32, 48, 64],
        "encoder_kernels": [3, 3, 1],
        "decoder_widths": [32, 48, 64],
        "decoder_kernels": [3, 5, 1],
        "attention": [True, False, True],
    },
}
# Our ids are padding 0, end 1, unknown 2 (T20); fairseq's start mark, never used here, goes last, so
# that the softmax is over the same types.
FAIRSEQ_TYPES = {"source": 352, "target": 376}


def our_id_order(side: str) -> list[int]:
    """Return fairseq's ids in the order of ours."""
    return [1, 2, 3, *range(4, FAIRSEQ_TYPES[side]), 0]


def our_ids(ids: np.ndarray) -> Tensor:
    """Translate fairseq ids, none of them the start mark, to ours."""
    return torch.as_tensor(ids.astype(np.int64) - 1)


@cache
def golden(name: str) -> dict[str, np.ndarray]:
    """Return the arrays of a golden file."""
    with np.load(Path(__file__).parent / f"{name}.npz") as arrays:
        return dict(arrays)


def model_params(name: str, grad_scale: str = "fairseq") -> ModelParams:
    """Return the architecture of a golden model; its tables hold 62 positions, ours plus padding."""
    return ModelParams.model_validate(
        {
            **ARCHITECTURES[name],
            "source_positions": True,
            "target_positions": True,
            "max_positions": 63,
            "encoder_grad_scale": grad_scale,
            "extra_scaling": True,
        }
    )


def fold(g: np.ndarray, v: np.ndarray, output_axis: int) -> Tensor:
    """Return g v / ||v||, normalized per output channel."""
    axes = tuple(axis for axis in range(v.ndim) if axis != output_axis)
    norm = np.sqrt((v.astype(np.float64) ** 2).sum(axis=axes, keepdims=True))
    return torch.as_tensor((g.reshape(norm.shape) * v / norm).astype(np.float32))


def golden_model(name: str) -> Seq2Seq:
    """Build the model of a golden file, weight norm folded in, in eval mode."""
    weights = {k.removeprefix("weights/"): v for k, v in golden(name).items() if k.startswith("weights/")}

    def layer(theirs: str) -> dict[str, Tensor]:
        v = weights[f"{theirs}.weight_v"]
        convolution = v.ndim == 3  # (K, inputs, outputs) there; (outputs, K * inputs) here
        weight = fold(weights[f"{theirs}.weight_g"], v, 2 if convolution else 0)
        weight = weight.permute(2, 0, 1).flatten(1) if convolution else weight
        return {"weight": weight, "bias": torch.as_tensor(weights[f"{theirs}.bias"])}

    ours: dict[str, Tensor] = {}

    def put(name: str, tensors: dict[str, Tensor]) -> None:
        ours.update({f"{name}.{key}": value for key, value in tensors.items()})

    for side, half in (("source", "encoder"), ("target", "decoder")):
        words = torch.as_tensor(weights[f"{half}.embed_tokens.weight"])
        ours[f"{side}_embedding.words.weight"] = words[our_id_order(side)]
        # Their first position is row 2, ours row 1; row 0 is padding.
        positions = torch.as_tensor(weights[f"{half}.embed_positions.weight"])
        ours[f"{side}_embedding.positions.weight"] = torch.cat(
            [torch.zeros_like(positions[:1]), positions[2:]]
        )
        put(f"{half}.input_map", layer(f"{half}.fc1"))
        put(f"{half}.output_map", layer(f"{half}.fc2"))
    maps = {
        "convolutions": "convolution.window_map",
        "projections": "residual.map",
        "in_projection": "attention.summary_map",
        "out_projection": "attention.context_map",
    }
    for key in weights:
        parts = key.split(".")
        if parts[-1] == "bias" and len(parts) > 3:
            kind = parts[3] if parts[1] == "attention" else parts[1]
            put(f"{parts[0]}.blocks.{parts[2]}.{maps[kind]}", layer(key.removesuffix(".bias")))
    output = layer("decoder.fc3")
    put("output_layer", {key: value[our_id_order("target")] for key, value in output.items()})

    model = Seq2Seq(
        model_params(name), FAIRSEQ_TYPES["source"], FAIRSEQ_TYPES["target"], padding_id=0, dropout=0.0
    )
    fold_weight_norm(model)
    model.load_state_dict(ours)
    return model.eval()
