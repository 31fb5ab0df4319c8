"""Sources of runs: folders, or revisions and experiments whose outputs are in DVC's cache."""

import contextlib
from pathlib import Path
from tempfile import TemporaryDirectory

from dvc.api import DVCFileSystem
from dvc.exceptions import DvcException
from dvc_data.index import DataIndexDirError
from scmrepo.exceptions import SCMError

from pipelines.report.run import SNAPSHOT, Cost, Run, read_metrics, read_run
from pipelines.results.costs import cost_file, cost_of_models
from pipelines.results.provenance import listed, stale_stages
from pipelines.results.reading import read

OF_FILTER = ("report.json", "rules.csv", "lengths.csv")
FILES = ("data/evaluation", "data/raw/test", *(f"data/filtered/{name}" for name in OF_FILTER))
OF_SEED = ("trained/{}/metrics.json", "trained/{}/curves", "translations/{}/attention.npz", "replaced/{}")


def open_run(name: str, root: Path, temporary: Path) -> Run:
    """Read a run.

    Args:
        name: of a folder with params.yaml and data/, or of a git revision or a DVC experiment.
        root: of the repository that has the revision and the costs of experiments.
        temporary: folder for files from DVC's cache.

    Raises:
        FileNotFoundError: if the run has not finished.
        ValueError: if there is no such run, or its outputs are lost or damaged.
    """
    folder = Path(name)
    if (folder / "params.yaml").is_file():
        return read_folder(folder, root)
    return read_revision(name, root, temporary / name.replace("/", "-"))


def read_folder(folder: Path, root: Path) -> Run:
    """Read the run of a workspace; its note names the stages that are not up to date."""

    def cost(seed: str) -> Cost:
        weights = folder / "data" / "trained" / seed / "model" / "weights.safetensors"
        return cost_of_models([cost_file(weights)], [folder, root]) if weights.is_file() else None

    name = "workspace" if folder.resolve() == root.resolve() else folder.resolve().name
    return read_run(name, folder, cost, staleness(folder))


def staleness(folder: Path) -> str:
    """Return a sentence on stages that are not up to date; empty if all are, or the folder has no .dvc."""
    if not (folder / ".dvc").is_dir():
        return ""
    try:
        stale = stale_stages(folder)
    except ValueError as error:
        return f"Whether these results are up to date is unknown: {error}"
    found = "These results are not up to date with params.yaml, code and data"
    return f"{found}: {listed(stale)} would rerun. Run dvc repro, then make report." if stale else ""


def read_revision(name: str, root: Path, folder: Path) -> Run:
    """Read the run of a revision or an experiment, whose files are copied to a folder."""
    try:
        files = DVCFileSystem(str(root), rev=name)
        files.info("params.yaml")  # only this looks up the revision
    except (DvcException, SCMError, OSError) as error:
        raise ValueError(
            f"{name}: found neither a folder nor a revision ({error}). Wanted a folder with params.yaml and "
            "data/, a git revision, or an experiment that dvc exp list shows."
        ) from error
    if not files.exists("dvc.lock"):
        raise ValueError(
            f"{name}: this revision has no dvc.lock, so it has no results. Wanted a commit that has "
            "one: after make repro, git add dvc.lock params.yaml && git commit."
        )
    try:
        seeds = fetch_run(files, folder)
        models = {seed: model_name(files, seed, folder) for seed in seeds}
    except (DvcException, DataIndexDirError, OSError) as error:
        raise ValueError(
            f"{name}: the outputs of this revision are not in DVC's cache ({error}). If another machine ran "
            "it, get them: dvc pull --all-commits, or dvc exp pull. Otherwise, run it again."
        ) from error
    return read_run(name, folder, lambda seed: cost_of_models([models[seed]], [root]))


def fetch_run(files: DVCFileSystem, folder: Path) -> list[str]:
    """Copy the files of a revision that the report needs; return its seeds."""
    fetch(files, str(SNAPSHOT), folder)
    seeds = [str(seed) for seed in read(folder / SNAPSHOT)["train"]["seeds"]]
    for path in [*FILES, *(f"data/{one.format(seed)}" for seed in seeds for one in OF_SEED)]:
        fetch(files, path, folder)
    if read_metrics(folder / "data").ensemble:
        fetch(files, "data/replaced/ensemble", folder)
    with contextlib.suppress(FileNotFoundError):  # older runs have none
        fetch(files, "data/filtered/removed.json", folder)
    return seeds


def fetch(files: DVCFileSystem, path: str, folder: Path) -> None:
    """Copy a file or folder of a revision."""
    target = folder / path
    target.parent.mkdir(parents=True, exist_ok=True)
    files.get(path, str(target), recursive=files.isdir(path))


def model_name(files: DVCFileSystem, seed: str, folder: Path) -> str:
    """Return the name under which the cost of a model is kept, from a temporary copy of its weights."""
    with TemporaryDirectory(dir=folder) as temporary:
        weights = Path(temporary, "weights")
        files.get_file(f"data/trained/{seed}/model/weights.safetensors", str(weights))
        return cost_file(weights)
