"""Draw two pictures of docs/results.md: `python -m experiments.figures`, once the stage encode has run.

Figure 2 of the paper (§5.6) and ensembles on Multi30k, from multi30k.csv; and the variance of activations
and gradients before the first update (§3.5), of a model as in the paper's ablations on the text in
data/encoded.
"""

from pathlib import Path
from unittest.mock import patch

import pandas as pd
import torch
from matplotlib.figure import Figure
from torch import Tensor, nn

from convs2s.config.load import load_params
from convs2s.ids.batching import Batch
from convs2s.train.distributed import Workers
from convs2s.train.setup import build_training
from pipelines.preset import preset_params

ROOT = Path(__file__).parents[1]
PICTURES = ROOT / "docs" / "pictures"
RUNS = Path(__file__).with_name("multi30k.csv")
CPU = Workers(0, 1, torch.device("cpu"))


def draw_figure_2(path: Path) -> None:
    """Draw BLEU, mean of both test sets and of seeds, by depth and by models (§5.2)."""
    runs = pd.read_csv(RUNS)
    bleu = runs[["bleu_2016", "bleu_2017"]].mean(axis=1).groupby(runs["row"]).mean()
    axes, right = (figure := Figure(figsize=(8, 3.5), layout="constrained")).subplots(1, 2, sharey=True)
    for side, kernel, base in (("encoder", 3, 4), ("decoder", 5, 5)):
        by_depth = {base: bleu["ConvS2S"]} | {
            layers: bleu[name] for layers in range(1, 14) if (name := f"{side}-{layers}-{kernel}") in bleu
        }
        axes.plot(*zip(*sorted(by_depth.items()), strict=True), marker="o", label=f"{side}, kernel {kernel}")
    right.plot(range(1, 9), [bleu[f"ensemble-{models}"] for models in range(1, 9)], marker="o")
    axes.set(xlabel="layers", ylabel="BLEU (tokenized), mean of two test sets")
    right.set(xlabel="models in an ensemble")
    axes.legend()
    for panel in (axes, right):
        panel.grid(visible=True, alpha=0.3)
    figure.savefig(path, dpi=110)


def measure_variance() -> dict[str, Tensor]:
    """Return the variance of each block's output, and of the gradient with respect to it, bottom first."""
    model, train = preset_params("ablation-en-de").model, load_params().train
    training = build_training(
        model, train, 1, *map(Path, ("data/encoded", "data/vocabulary", "data/none")), CPU
    )
    blocks = [*training.model.encoder.blocks, *training.model.decoder.layers()]
    outputs = list[Tensor]()

    def keep(module: nn.Module, inputs: object, output: Tensor | tuple[Tensor, ...]) -> None:
        outputs.append(output[0] if isinstance(output, tuple) else output)
        outputs[-1].retain_grad()

    for block in blocks:
        block.register_forward_hook(keep)
    lengths = training.train.source.lengths, training.train.target.lengths
    batch: Batch = next(iter(training.batching.epoch(*lengths, 1, 0)))
    loss, _ = training.losses(0.0).train()(*training.load(batch).parts[0], None)
    (loss / batch.target_tokens).backward()
    gradients = [output.grad for output in outputs if output.grad is not None]
    return {"activations": torch.stack([x.var() for x in outputs]).detach(),
            "gradients": torch.stack([x.var() for x in gradients])}  # fmt: skip


def draw_variance(path: Path) -> None:
    """Draw the variances with the paper's initialization, and with the scale of PyTorch's default."""
    figure = Figure(figsize=(8, 3.5), layout="constrained")
    sides = figure.subplots(1, 2)
    with patch("convs2s.model.initialization.linear_std", lambda n, *_: (3 * n) ** -0.5):
        default = measure_variance()
    for label, measured in (("the paper's", measure_variance()), ("PyTorch's default", default)):
        for axes, (name, values) in zip(sides, measured.items(), strict=True):
            axes.semilogy(range(1, len(values) + 1), values, marker=".", label=label)
            axes.set(xlabel="block: encoder 1-13, then decoder", ylabel=f"variance of {name}")
    sides[0].legend()
    figure.savefig(path, dpi=110)


if __name__ == "__main__":
    draw_figure_2(PICTURES / "figure2-multi30k.png")
    draw_variance(PICTURES / "variance.png")
