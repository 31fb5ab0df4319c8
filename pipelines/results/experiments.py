"""Where the experiments of a sweep come from: what they have in common, and what their trainings took."""

import json
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pandas as pd
from dvc.api import DVCFileSystem
from dvc.exceptions import DvcException

from convs2s.config.load import load_params
from convs2s.config.params import Params
from convs2s.score.identity import TestSetIdentity
from convs2s.train.cost import file_name
from pipelines.results.provenance import CODE, Refused, command, commit, cost_of, dumped, listed, preset_of


def sweep_record(root: Path, sweep: Path, costs: Sequence[Path]) -> dict[str, Any]:
    """Return what is to record of a sweep: preset, what all its experiments have otherwise, commit and so on.

    Args:
        sweep: the table that the flow `sweep` wrote, with a column `experiment`.
        costs: folders where trainings have left what they took.

    Raises:
        Refused: if an experiment is not there, is of other code than the commit, or of another test set.
    """
    head = commit(root)
    with TemporaryDirectory() as folder:
        found = [read_experiment(root, name, head, Path(folder)) for name in names_in(sweep)]
    grounds = [one["grounds"] for one in found]
    if any(one != grounds[0] for one in grounds):
        raise Refused(f"{sweep}: its experiments have different test sets or signatures; wanted the same.")
    common = [
        item for item in found[0]["changes"].items() if all(item in f["changes"].items() for f in found)
    ]
    return {
        "preset": found[0]["preset"],
        "changes": dict(common),
        "commit": head,
        "cost": dumped(cost_of([name for one in found for name in one["models"]], costs)),
        **grounds[0],
    }


def names_in(sweep: Path) -> list[str]:
    """Return the experiments of a sweep that did not fail.

    Raises:
        Refused: if it is no table of a sweep.
    """
    table = pd.read_csv(sweep)
    if "failed" in table:
        table = table[table["failed"].isna()]
    if "experiment" not in table or table.empty:
        raise Refused(
            f"{sweep}: found columns {', '.join(map(str, table.columns))}; wanted a column `experiment`, as "
            "the flow sweep writes it, and one that did not fail."
        )
    return [str(name) for name in table["experiment"]]


def read_experiment(root: Path, name: str, head: str, folder: Path) -> dict[str, Any]:
    """Return preset, changes, grounds and models of an experiment; `folder` is for its files."""
    revision = revision_of(root, name)
    if changed := command(root, "git", "diff", "--name-only", head, revision, "--", *CODE).split():
        raise Refused(
            f"experiment {name}: its code differs from commit {head[:9]} in {listed(changed)}. Wanted a "
            "sweep of committed code: commit, and run it again."
        )
    (folder / "params.yaml").write_text(command(root, "git", "show", f"{revision}:params.yaml"), "utf-8")
    params = load_params(folder / "params.yaml")
    preset, changes = preset_of(params, root / "experiments")
    models = fetch(root, revision, params, folder, name)
    identity = TestSetIdentity.read(folder / "test_set.json")
    signatures = json.loads((folder / "signatures.json").read_text(encoding="utf-8"))
    return {
        "preset": preset,
        "changes": changes,
        "grounds": {"signatures": signatures, "test_set": str(identity)},
        "models": models,
    }


def revision_of(root: Path, name: str) -> str:
    """Return the commit of a DVC experiment.

    Raises:
        Refused: if there is none of this name.
    """
    listed = command(root, "git", "for-each-ref", "--format=%(objectname) %(refname)", "refs/exps")
    for line in listed.split("\n"):
        if line.endswith(f"/{name}"):
            return line.split()[0]
    raise Refused(f"there is no experiment {name}; wanted one that dvc exp list shows. Run the sweep.")


def fetch(root: Path, revision: str, params: Params, folder: Path, name: str) -> list[str]:
    """Copy signatures and test set of an experiment from DVC's cache; return its models by `file_name`."""
    try:
        files = DVCFileSystem(str(root), rev=revision)
        for file in ("signatures.json", "test_set.json"):
            files.get_file(f"data/evaluation/{file}", str(folder / file))
        models: list[str] = []
        for seed in params.train.seeds:
            weights = folder / "weights.safetensors"
            files.get_file(f"data/trained/{seed}/model/weights.safetensors", str(weights))
            models.append(file_name(weights))
    except (DvcException, OSError) as error:
        raise Refused(
            f"experiment {name}: its outputs cannot be read ({error}); run the sweep again."
        ) from error
    return models
