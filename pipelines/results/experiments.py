"""Where the experiments of a sweep come from: what they have in common, and what their trainings took."""

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pandas as pd
from dvc.api import DVCFileSystem
from dvc.exceptions import DvcException

from convs2s.config.load import load_params
from convs2s.train.cost import file_name
from pipelines import shell
from pipelines.results.costs import cost_of, kept_costs, weights
from pipelines.results.provenance import CODE, NotRecorded, commit, listed, origin_of


def sweep_record(root: Path, sweep: Path) -> dict[str, Any]:
    """Return what to record of a sweep: preset, changes that all experiments share, commit, cost and so on.

    Args:
        sweep: the table that the flow `sweep` wrote, with a column `experiment`.

    Raises:
        NotRecorded: if an experiment does not exist, or has other code or another test set than the rest.
    """
    head, models, origins = commit(root), list[str](), []
    for name in names_in(sweep):
        with TemporaryDirectory() as folder:
            models += fetch(root, name, head, Path(folder))
            origins.append(origin_of(Path(folder), root / "experiments"))
    changes = [one.pop("changes") for one in origins]
    if any(one != origins[0] for one in origins):
        raise NotRecorded(f"{sweep}: its experiments have different presets, test sets or signatures.")
    common = {k: v for k, v in changes[0].items() if all(k in one and one[k] == v for one in changes)}
    return {**origins[0], "changes": common, "commit": head, "cost": cost_of(models, kept_costs(root))}


def names_in(sweep: Path) -> list[str]:
    """Return the experiments of a sweep that did not fail; raise NotRecorded if there are none."""
    table = pd.read_csv(sweep)
    succeeded = table[table["failed"].isna()] if "failed" in table else table
    if "experiment" not in table or succeeded.empty:
        wanted = "a column `experiment`, as the flow sweep writes it, and one that did not fail"
        raise NotRecorded(f"{sweep}: found columns {', '.join(map(str, table.columns))}; wanted {wanted}.")
    return [str(name) for name in succeeded["experiment"]]


def fetch(root: Path, name: str, head: str, folder: Path) -> list[str]:
    """Copy what `origin_of` needs of an experiment to a folder; return its models by `file_name`."""
    refs = shell.run("git", "for-each-ref", "--format=%(objectname) %(refname)", "refs/exps", cwd=root)
    revision = next((line.split()[0] for line in refs.split("\n") if line.endswith(f"/{name}")), None)
    if revision is None:
        raise NotRecorded(
            f"there is no experiment {name}; wanted one that dvc exp list shows. Run the sweep."
        )
    if changed := shell.run("git", "diff", "--name-only", head, revision, "--", *CODE, cwd=root).split():
        found = f"experiment {name}: its code differs from commit {head[:9]} in {listed(changed)}"
        raise NotRecorded(f"{found}. Wanted a sweep of committed code: commit, and run it again.")
    models, files = [], DVCFileSystem(str(root), rev=revision)
    (folder / "data" / "evaluation").mkdir(parents=True)
    try:
        for path in ("params.yaml", "data/evaluation/signatures.json", "data/evaluation/test_set.json"):
            files.get_file(path, str(folder / path))
        for seed in load_params(folder / "params.yaml").train.seeds:
            files.get_file(weights(Path(), seed).as_posix(), str(folder / "weights"))
            models.append(file_name(folder / "weights"))
    except (DvcException, OSError) as error:
        message = f"experiment {name}: its outputs cannot be read ({error}); run the sweep again."
        raise NotRecorded(message) from error
    return models
