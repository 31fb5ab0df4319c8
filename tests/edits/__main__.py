"""Print a table of the edits and what they change: `python -m tests.edits`."""

import tempfile
from pathlib import Path
from typing import Any

from tests.edits.compare import Unedited, largest_difference, run
from tests.edits.routes import Results
from tests.edits.table import EDITS, Edit

HEADER = (
    "edit", "loss of the last update", "validation perplexity", "translations changed", "scores changed",
    "serve as translate", "largest difference without the engine", "left out",
)  # fmt: skip


def describe(edit: Edit, before: Results, after: dict[str, Results]) -> tuple[str, ...]:
    """Return the cells of an edit: values before -> after, with the engine."""
    auto, plain = after["auto"], after["plain"]
    # The last of the losses, and of the two perplexities behind them.
    [loss, perplexity] = [f"{before['training'][i]:.4f} -> {auto['training'][i]:.4f}" for i in (-3, -1)]
    paths = {path: fault for faults in auto["warnings"].values() for path, fault in faults.items()}
    left_out = "; ".join(f"{path}: {fault}" for path, fault in paths.items()) or "none"
    routes = [route for route in before if route not in ("warnings", "errors")]
    largest = max(
        largest_difference(auto[route], plain[route])
        for route in routes
        if route != "training" or not edit.train.get("dropout")
    )
    if edit.error is not None:
        return edit.name, loss, perplexity, *["refused"] * 3, f"{largest:.1g}", left_out
    return (
        edit.name, loss, perplexity, count(best_texts(before), best_texts(auto)),
        count(before["score"], auto["score"]),
        "yes" if auto["serve"][0] == best_texts(auto) else "no", f"{largest:.1g}", left_out,
    )  # fmt: skip


def best_texts(results: Results) -> list[str]:
    """Return the best translation of each sentence."""
    return [text for text, _ in results["translate"][0][::2]]


def count(before: list[Any], after: list[Any]) -> str:
    """Return how many of the values differ."""
    pairs = zip(before, after, strict=True)
    return f"{sum(largest_difference(*pair) > 2e-4 for pair in pairs)} of {len(before)}"


def main() -> None:
    """Try all edits."""
    with tempfile.TemporaryDirectory() as name:
        unedited = Unedited(Path(name) / "unedited")
        print(" | ".join(HEADER), " | ".join("-" for _ in HEADER), sep="\n")
        for number, edit in enumerate(EDITS):
            package = None if edit.adds_weights else unedited.package
            before = unedited.run(edit)["auto"]
            cells = describe(edit, before, run(Path(name) / f"edit-{number}", edit, package))
            print(" | ".join(cells), flush=True)


if __name__ == "__main__":
    main()
