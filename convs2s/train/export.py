"""Export a finished training: the best model, its curves and metrics."""

import json
import shutil
from pathlib import Path

from convs2s.text.corpus.files import atomic_path
from convs2s.train.loop import Training


def export(training: Training, model: Path, curves: Path, out: Path) -> None:
    """Copy the folders `model` and `curves` to `out`, and write metrics.json next to them."""
    out.mkdir(parents=True, exist_ok=True)
    for source, name in ((model, "model"), (curves, "curves")):
        with atomic_path(out / name) as temporary:
            shutil.copytree(source, temporary)
    with atomic_path(out / "metrics.json") as temporary:
        temporary.write_text(json.dumps(metrics(training), indent=2) + "\n", encoding="utf-8")


def metrics(training: Training) -> dict[str, float | int]:
    """Return the figures of the best epoch, and the size of the training."""
    state = training.state
    best = min(state.epochs, key=lambda record: record["validation_perplexity"])
    figures = {
        "validation_perplexity": best["validation_perplexity"],
        "validation_loss": best["validation_loss"],
        "training_loss": best["training_loss"],
        "best_epoch": best["epoch"],
        "epochs": len(state.epochs),
        "updates": state.updates,
        "parameters": sum(p.numel() for p in training.model.parameters()),
    }
    if "selected_types" in best:
        figures["selected_types"] = best["selected_types"]
    return figures
