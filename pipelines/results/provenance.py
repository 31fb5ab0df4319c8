"""Where results come from: commit, preset, test set. Results of unknown origin are not recorded."""

from collections.abc import Sequence
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
    """Return what workspaces have in common; raise ValueError if that is not one preset and one test set."""
    origins, changes = [], []
    for workspace in workspaces:
        preset, changed = preset_of(load_params(workspace / "params.yaml"), root / "experiments")
        test_set = str(SetIdentity.read(existing(workspace / TEST_SET, REPRODUCE)))
        signatures = read(workspace / SIGNATURES, REPRODUCE)
        origins.append({"preset": preset, "signatures": signatures, "test_set": test_set})
        changes.append(changed.items())
    if any(one != origins[0] for one in origins):
        raise ValueError("the experiments have different presets, test sets or signatures; wanted one sweep.")
    common = dict(item for item in changes[0] if all(item in one for one in changes))
    return {**origins[0], "changes": common, "commit": commit(root)}


def commit(root: Path) -> str:
    """Return the commit that is checked out; raise ValueError if the code differs from it."""
    found = shell.run("git", "rev-parse", "HEAD", cwd=root)
    if changed := shell.run("git", "status", "--porcelain", "--", *CODE, cwd=root):
        names = listed([line[3:] for line in changed.split("\n")])
        wanted = "Wanted committed code: commit it (git commit), or undo the changes."
        raise ValueError(f"Code differs from commit {found[:9]}: {names}. {wanted}")
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
    """Copy what a record needs of an experiment; raise ValueError if it is lost or of other code."""
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
        found = f"experiment {name}: its outputs cannot be read"
        raise ValueError(f"{found} ({error}); run the sweep again.") from error
    return folder


def listed(names: Sequence[str]) -> str:
    return ", ".join(names[:SHOWN]) + (f" and {len(names) - SHOWN} more" if len(names) > SHOWN else "")


def preset_of(params: Params, experiments: Path) -> tuple[str, dict[str, Any]]:
    """Return the preset of this `package.name`, and what differs; raise ValueError if there is none."""
    wanted, others = params.package.name, []
    # Most presets have the name of their file, so that is the first to try.
    for name in sorted(preset_names(experiments), key=lambda name: name != wanted):
        preset = preset_params(name, experiments)
        if preset.package.name == wanted:
            theirs, ours = (flat(one.model_dump(mode="json")) for one in (preset, params))
            changed = {key for key in theirs.keys() | ours.keys() if theirs.get(key) != ours.get(key)}
            return name, {key: ours.get(key) for key in sorted(changed - OF_NO_EFFECT)}
        others.append(repr(preset.package.name))
    found = f"params.yaml: package.name: found {wanted!r}, which no preset has: nobody else could run it"
    raise ValueError(f"{found}. Wanted one of {', '.join(others)}, or a new preset.")
