"""The results of an edited library beside those before the edit."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from tests.edits.routes import Results
from tests.edits.table import ALL, Edit
from tests.edits.tree import copy_with_edit, run_routes

NOTHING = Edit("nothing", "convs2s/model/seq2seq.py", (), set())
ROUNDING = dict.fromkeys(ALL, 2e-4) | {"training": 2e-5}
"""Scores are written with four decimals."""


def run(folder: Path, edit: Edit, package: Path | None) -> dict[str, Results]:
    """Return the results of all routes, by engine, with an edited copy of the library.

    Args:
        folder: for the copy and its files; it does not exist yet.
        package: the model folder; None for one that the edited library writes, in folder/files.
    """
    tree = copy_with_edit(folder / "tree", edit.file, edit.replacements)
    arguments = str(folder / "files"), None if package is None else str(package), edit.train
    return run_routes(tree, folder / "results.json", *arguments)


class Unedited:
    """The results before any edit.

    Attributes:
        package: a model folder.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.package = folder / "plain" / "files" / "package"
        self.results = {"": run(folder / "plain", NOTHING, None)}

    def run(self, edit: Edit) -> dict[str, Results]:
        """Return the results by engine, with the training's parameters of an edit."""
        name = "-".join(f"{key}-{value}" for key, value in edit.train.items())
        if name not in self.results:
            same = replace(NOTHING, train=edit.train)
            self.results[name] = run(self.folder / name, same, self.package)
        return self.results[name]


def differing(first: Results, second: Results) -> set[str]:
    """Return the routes whose texts or numbers differ by more than rounding."""
    return {route for route in ALL if largest_difference(first[route], second[route]) > ROUNDING[route]}


def largest_difference(first: Any, second: Any) -> float:
    """Return the largest difference of numbers, relative to those above 1; infinite if texts or counts do."""
    values, others = flatten(first), flatten(second)
    if len(values) != len(others):
        return float("inf")
    return max((difference(*pair) for pair in zip(values, others, strict=True)), default=0.0)


def difference(first: str | float, second: str | float) -> float:
    """Return how two values differ."""
    if isinstance(first, str) or isinstance(second, str):
        return 0.0 if first == second else float("inf")
    return abs(first - second) / max(1.0, abs(first))


def flatten(values: Any) -> list[str | float]:
    """Return the texts and numbers in nested lists."""
    if isinstance(values, list):
        return [leaf for value in values for leaf in flatten(value)]
    return [values]
