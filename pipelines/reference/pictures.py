"""The pictures of docs/how-it-works.md, drawn from a trained model."""

import argparse
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import matplotlib.style
import numpy as np
import torch
from jaxtyping import Float32
from matplotlib.figure import Figure

from convs2s.commands.folders import draw
from convs2s.decode.batches import padded
from convs2s.model.loading import load_model
from convs2s.model.receptive_field import receptive_field
from convs2s.model.seq2seq import Seq2Seq
from convs2s.package.layer_attention import LayerReader
from convs2s.package.translator import load
from convs2s.score.pictures import make_label, save
from convs2s.text.corpus.files import atomic_path

PICTURES = Path(__file__).parents[2] / "docs" / "pictures"
CHANNELS = 16  # rows of a map of the GLU block; all of them would be too small to see
GATES = "gates σ(B)"
Map = Float32[np.ndarray, "rows positions"]


def gate_maps(model: Seq2Seq, ids: Sequence[int]) -> dict[str, Map]:
    """Return the activations in the encoder's first block, channels by positions (§3.2)."""
    seen: dict[str, torch.Tensor] = {}
    block: Any = model.encoder.blocks[0]
    hooks = [
        block.register_forward_hook(lambda _, given, out: seen.update(x=given[0], out=out)),
        block.convolution.window_map.register_forward_hook(lambda _, __, out: seen.update(both=out)),
    ]
    with torch.inference_mode():
        model.encode(padded([list(ids)]))
    for hook in hooks:
        hook.remove()
    a, b = seen["both"].chunk(2, dim=-1)
    gate = torch.sigmoid(b)
    maps = {"input x": seen["x"], "values A": a, GATES: gate, "A · σ(B)": a * gate, "output": seen["out"]}
    return {title: values[0, :, :CHANNELS].T.numpy() for title, values in maps.items()}


def influence(blocks: Sequence[Any], x: torch.Tensor, place: int) -> Map:
    """Return how strongly each input position affects one position of each block's output, bottom first.

    Args:
        blocks: functions (1, N, C) -> (1, N, C), applied one after the other.
        x: (1, N, C), the input of the first.
        place: the position in the outputs.
    """
    x = x.detach().requires_grad_()
    rows, h = [], x
    for block in blocks:
        h = block(h)
        (gradient,) = torch.autograd.grad(h[0, place].square().sum(), x, retain_graph=True)
        rows.append(gradient[0].norm(dim=-1))
    return torch.stack(rows).numpy()


def fields(model: Seq2Seq, positions: int) -> tuple[Map, Map]:
    """Return the influence on the middle of the encoder, and of the decoder without attention (§3.2)."""
    generator = torch.Generator().manual_seed(1)
    maps = []
    for side in (model.encoder, model.decoder):
        x = torch.randn(1, positions, side.input_map.out_features, generator=generator)
        apply = both_sides if side is model.encoder else causal
        maps.append(influence([partial(apply, block) for block in side.blocks], x, positions // 2))
    return maps[0], maps[1]


def both_sides(block: Any, h: torch.Tensor) -> torch.Tensor:
    """Apply an encoder block."""
    output: torch.Tensor = block(h, None)
    return output


def causal(block: Any, h: torch.Tensor) -> torch.Tensor:
    """Apply a decoder block without its attention, which sees the source, not the target."""
    output: torch.Tensor = block.residual(h, block.convolution(h, block.convolution.kernel_width - 1, 0))
    return output


def draw_gates(maps: dict[str, Map], tokens: Sequence[str], path: Path) -> None:
    """Write the heat maps of `gate_maps` side by side."""
    with matplotlib.style.context("default"):
        figure = Figure(figsize=(2.6 * len(maps), 3.8), layout="constrained")
        grid = figure.subplots(1, len(maps), sharey=True)
        for axes, (title, values) in zip(grid, maps.items(), strict=True):
            top = float(np.abs(values).max())
            limits = (0.0, 1.0, "Greys") if title == GATES else (-top, top, "RdBu")
            image = axes.imshow(values, vmin=limits[0], vmax=limits[1], cmap=limits[2], aspect="auto")
            axes.set_title(title)
            axes.set_xticks(range(len(tokens)), [*map(make_label, tokens)], rotation=90, fontsize=7)
            figure.colorbar(image, ax=axes, location="bottom", shrink=0.8)
        grid[0].set_ylabel(f"channels, {CHANNELS} of them")
        write(figure, path)


def draw_fields(maps: Sequence[Map], kernels: Sequence[Sequence[int]], path: Path) -> None:
    """Draw how far each layer of encoder and decoder sees, with the first layer at the bottom."""
    with matplotlib.style.context("default"):
        figure = Figure(figsize=(10, 1.6 + 0.35 * max(map(len, maps))), layout="constrained")
        grid = figure.subplots(1, 2)
        for axes, title, values, widths in zip(grid, ("encoder", "decoder"), maps, kernels, strict=True):
            shares = values / values.max(axis=1, keepdims=True)
            axes.imshow(shares, cmap="Blues", norm="log", vmin=1e-3, vmax=1, origin="lower", aspect="auto")
            names = [f"layer {n}: sees {receptive_field(widths[:n])}" for n in range(1, len(widths) + 1)]
            axes.set_yticks(range(len(names)), names)
            places = np.arange(values.shape[1])
            axes.set_xticks(places[::2], (places - values.shape[1] // 2)[::2])
            axes.set(title=title, xlabel="input position, relative to the output's")
        write(figure, path)


def write(figure: Figure, path: Path) -> None:
    """Write a picture, atomically."""
    with atomic_path(path) as temporary:
        save(figure, temporary)


def main(arguments: Sequence[str] | None = None) -> None:
    """Draw all pictures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("text", help="a sentence")
    parser.add_argument("--model", type=Path, default=Path("data/models/1"), metavar="DIR")
    parser.add_argument("--out", type=Path, default=PICTURES, metavar="DIR", help="folder of the pictures")
    options = parser.parse_args(arguments)
    translator = load(options.model, "cpu")
    reader, words = LayerReader.of(translator), translator.source.tokenize(options.text)
    attention = reader.read(words)
    draw(options.out / "multistep-attention.png", attention)
    model = load_model(options.model)  # the plain one; a translator's has packed weights
    maps = gate_maps(model, reader.rows(words, reader.parts(words))[0])
    draw_gates(maps, attention.source, options.out / "glu-block.png")
    kernels = [kernel_widths(side.blocks) for side in (model.encoder, model.decoder)]
    found = fields(model, 2 * max(map(receptive_field, kernels)) + 1)
    draw_fields(found, kernels, options.out / "receptive-field.png")


def kernel_widths(blocks: Any) -> list[int]:
    """Return the kernel width of each block."""
    return [block.convolution.kernel_width for block in blocks]


if __name__ == "__main__":
    main()
