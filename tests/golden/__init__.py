"""Golden outputs of real fairseq models, and these models as imported by `convs2s import-fairseq`."""

import argparse
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from convs2s.cli import main
from convs2s.fairseq.files import Checkpoint
from convs2s.model.seq2seq import Seq2Seq
from convs2s.model.storage import load_model

NAMES = ("plain", "varied")
# As fairseq stores them: layers and attention are strings.
PLAIN: dict[str, Any] = {
    "arch": "fconv",
    "encoder_embed_dim": 24,
    "decoder_embed_dim": 24,
    "decoder_out_embed_dim": 20,
    "encoder_layers": "[(32, 3)] * 2 + [(32, 3)]",
    "decoder_layers": "[(32, 3)] * 2",
    "decoder_attention": "True",
    "dropout": 0.1,
    "share_input_output_embed": False,
}
VARIED = {
    "decoder_out_embed_dim": 24,
    "encoder_layers": "[(32, 3), (48, 3), (64, 1)]",
    "decoder_layers": "[(32, 3), (48, 5), (64, 1)]",
    "decoder_attention": "[True, False, True]",
}
ARGUMENTS = {"plain": PLAIN, "varied": PLAIN | VARIED}
FAIRSEQ_SIZES = {"source": 352, "target": 376}  # of the dictionaries, including the four special symbols


def our_ids(ids: np.ndarray) -> Tensor:
    """Translate fairseq ids, none of them the start symbol, to ours."""
    return torch.as_tensor(ids.astype(np.int64) - 1)


@cache
def golden(name: str) -> dict[str, np.ndarray]:
    """Return the arrays of a golden file."""
    with np.load(Path(__file__).parent / f"{name}.npz") as arrays:
        return dict(arrays)


def tensors(name: str) -> dict[str, Tensor]:
    """Return the weights of a golden model as fairseq names and shapes them, and its buffers."""
    arrays = {key: value for key, value in golden(name).items() if key.startswith("weights/")}
    weights = {key.removeprefix("weights/"): torch.tensor(value) for key, value in arrays.items()}
    buffers = ("version", "convolutions.0._linearized_weight", "embed_positions._float_tensor")
    return {**weights, **{f"decoder.{name}": torch.tensor([2.0]) for name in buffers}}


def checkpoint(name: str, **changes: Any) -> Checkpoint:
    """Return a golden model as if read from a file, with some arguments changed."""
    return Checkpoint(Path(f"{name}.pt"), {**ARGUMENTS[name], **changes}, tensors(name))


def write_checkpoint(path: Path, name: str, **changes: Any) -> Path:
    """Write a golden model as fairseq did from 2017 to 2019, with some arguments changed."""
    arguments = argparse.Namespace(**{**ARGUMENTS[name], **changes})
    torch.save({"args": arguments, "model": tensors(name)}, path)
    return path


def write_dictionaries(folder: Path) -> tuple[Path, Path]:
    """Write dictionaries of made-up words, e4 for the source's id 4 and so on, as fairseq does."""
    paths = folder / "dict.en.txt", folder / "dict.de.txt"
    for path, count in zip(paths, FAIRSEQ_SIZES.values(), strict=True):
        letter = path.name[5]
        lines = [f"{letter}{id_} {1000 - id_}\n" for id_ in range(4, count)]
        path.write_text("".join(lines), encoding="utf-8", newline="\n")
    return paths


def import_command(file: Path, dictionaries: tuple[Path, Path], out: Path, *options: str) -> int:
    """Run `convs2s import-fairseq`; return its exit status."""
    source, target = map(str, dictionaries)
    fixed = [str(file), "--source-dict", source, "--target-dict", target, "--out", str(out)]
    return main(["import-fairseq", *fixed, *options])


@cache
def golden_model(name: str) -> Seq2Seq:
    """Return a golden model imported by the command and loaded from its model folder, in eval mode."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        file = write_checkpoint(folder / "model.pt", name)
        assert import_command(file, write_dictionaries(folder), folder / "out") == 0
        return load_model(folder / "out")
