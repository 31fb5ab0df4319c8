"""Where results come from: commit, preset, test set. Results of unknown origin are not recorded."""

from collections.abc import Iterable, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

from dvc.api import DVCFileSystem
from dvc.exceptions import DvcException
from dvc.repo import Repo

from convs2s.config.load import load_params
from convs2s.config.params import Params
from convs2s.score.identity import SetIdentity
from pipelines import shell
from pipelines.preset.render import preset_names, preset_params
from pipelines.results.costs import weights
from pipelines.results.reading import existing, flat, read

CODE = (
    "convs2s", "pipelines", "experiments/base.yaml", "experiments/presets", "dvc.yaml", "pyproject.toml",
    "constraints.txt",
)  # fmt: skip
"""What the commit vouches for; params.yaml is recorded as preset and changes."""
OF_NO_EFFECT = {
    "download.folder", "train.seeds", "train.checkpoint_updates", "train.nodes", "train.rendezvous",
}  # fmt: skip
"""No changes to a preset: they say where files and machines are; seeds are recorded with the scores."""
SHOWN = 5  # stages or files that an error names
SIGNATURES, TEST_SET = Path("data/evaluation/signatures.json"), Path("data/evaluation/test_set.json")
REPRODUCE = "run dvc repro, which makes the outputs of all stages, then record"


def origin_of(root: Path, workspaces: Sequence[Path]) -> dict[str, Any]:
    """Return commit, preset, signatures, test set, and the changes to the preset that all workspaces share.

    Raises:
        ValueError: if the code is not committed, there is no such preset, or a workspace has other ones.
    """
    origins, changes = [], []
    for workspace in workspaces:
        preset, changed = preset_of(load_params(workspace / "params.yaml"), root / "experiments")
        signatures = read(workspace / SIGNATURES, REPRODUCE)
        test_set = SetIdentity.read(existing(workspace / TEST_SET, REPRODUCE))
        origins.append({"preset": preset, "signatures": signatures, "test_set": str(test_set)})
        changes.append(changed)
    if any(one != origins[0] for one in origins):
        raise ValueError("the experiments have different presets, test sets or signatures; wanted one sweep.")
    common = {k: v for k, v in changes[0].items() if all(k in one and one[k] == v for one in changes)}
    return {**origins[0], "changes": common, "commit": commit(root)}


def commit(root: Path) -> str:
    """Return the commit that is checked out; raise ValueError if the code differs from it."""
    found = shell.run("git", "rev-parse", "HEAD", cwd=root)
    if changed := shell.run("git", "status", "--porcelain", "--", *CODE, cwd=root):
        names = listed(line[3:] for line in changed.split("\n"))
        message = "Wanted committed code: commit it (git commit), or undo the changes."
        raise ValueError(f"Code differs from commit {found[:9]}: {names}. {message}")
    return found


def check_fresh(root: Path) -> None:
    """Raise ValueError if a stage is not up to date with params.yaml, code and data."""
    try:
        with Repo(str(root)) as repo:
            stale = sorted(repo.status())
    except DvcException as error:
        raise ValueError(f"dvc status failed: {error}") from error
    if stale:
        found = f"Results are not up to date with params.yaml, code and data: {listed(stale)}"
        raise ValueError(f"{found}. Run dvc repro, then record.")


def fetch(root: Path, name: str, folder: Path) -> Path:
    """Copy what a record needs of an experiment to a folder, as a workspace; return the folder.

    Raises:
        ValueError: if the experiment does not exist, is of other code, or has lost its outputs.
    """
    revision = shell.run("git", "for-each-ref", "--format=%(objectname)", f"refs/exps/*/*/{name}", cwd=root)
    if not revision:
        raise ValueError(f"there is no experiment {name}; wanted one that dvc exp list shows. Run the sweep.")
    head = commit(root)
    if changed := shell.run("git", "diff", "--name-only", head, revision, "--", *CODE, cwd=root).split():
        found = f"experiment {name}: its code differs from commit {head[:9]} in {listed(changed)}"
        raise ValueError(f"{found}. Wanted a sweep of committed code: commit, and run it again.")
    try:
        files = DVCFileSystem(str(root), rev=revision)
        # `weights` reads params.yaml only after that has been copied.
        for path in chain([folder / one for one in ("params.yaml", SIGNATURES, TEST_SET)], weights(folder)):
            path.parent.mkdir(parents=True, exist_ok=True)
            files.get_file(path.relative_to(folder).as_posix(), str(path))
    except (DvcException, OSError) as error:
        raise ValueError(
            f"experiment {name}: its outputs cannot be read ({error}); run the sweep again."
        ) from error
    return folder


def listed(names: Iterable[str]) -> str:
    """Return the first few names."""
    every = list(names)
    return ", ".join(every[:SHOWN]) + (f" and {len(every) - SHOWN} more" if len(every) > SHOWN else "")


def preset_of(params: Params, experiments: Path) -> tuple[str, dict[str, Any]]:
    """Return the preset of the same `package.name`, and all values that differ from it, by dotted name.

    Raises:
        ValueError: if there is none.
    """
    names = {}
    # Most presets have the name of their file, so that is the first to try.
    for name in sorted(preset_names(experiments), key=lambda name: name != params.package.name):
        preset = preset_params(name, experiments)
        if preset.package.name == params.package.name:
            theirs, ours = flat(preset.model_dump(mode="json")), flat(params.model_dump(mode="json"))
            changed = {key for key in theirs.keys() | ours.keys() if theirs.get(key) != ours.get(key)}
            return name, {key: ours.get(key) for key in sorted(changed - OF_NO_EFFECT)}
        names[name] = preset.package.name
    raise ValueError(
        f"params.yaml: package.name: found {params.package.name!r}, which no preset has: nobody "
        f"else could run it. Wanted one of {', '.join(map(repr, names.values()))}, or a new preset."
    )
