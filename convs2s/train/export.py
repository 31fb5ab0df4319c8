"""Export a finished training: the best model, its curves and metrics."""

import json
import shutil
from pathlib import Path

from convs2s.config.model import ModelParams
from convs2s.model.storage import save_model
from convs2s.text.corpus.files import atomic_path
from convs2s.text.vocabulary.vocabulary import PAD
from convs2s.train.checkpoint import Checkpoint, load_weights
from convs2s.train.training import Training


def export(training: Training, params: ModelParams, best: Checkpoint | Path, curves: Path, out: Path) -> None:
    """Write model/, curves/ and metrics.json to `out`.

    Args:
        best: the checkpoint of the best epoch, whose weights `training.model` then has; or its model folder,
            which is copied.
        curves: folder to copy.
    """
    out.mkdir(parents=True, exist_ok=True)
    with atomic_path(out / "model") as temporary:
        if isinstance(best, Path):
            shutil.copytree(best, temporary)
        else:
            load_weights(training.model, best, out)
            save(training, params, temporary)
    with atomic_path(out / "curves") as temporary:
        shutil.copytree(curves, temporary)
    with atomic_path(out / "metrics.json") as temporary:
        temporary.write_text(json.dumps(metrics(training), indent=2) + "\n", encoding="utf-8")


def save(training: Training, params: ModelParams, folder: Path) -> None:
    """Write the model as a folder."""
    source_size = training.model.source_embedding.words.num_embeddings
    target_size = training.model.target_embedding.words.num_embeddings
    save_model(folder, training.model, params, source_size, target_size, PAD)


def metrics(training: Training) -> dict[str, float | int]:
    """Return the best epoch's losses, the numbers of epochs and updates, and the model size."""
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
    if "selected_entries" in best:
        figures["selected_entries"] = best["selected_entries"]
    return figures
