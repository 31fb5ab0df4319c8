"""Where results come from: commit, preset, test set. Results of unknown origin are not recorded."""

from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from typing import Any

from dvc.api import DVCFileSystem
from dvc.exceptions import DvcException
from dvc.repo import Repo

from convs2s.config.load import load_params
from convs2s.score.identity import SetIdentity
from pipelines import shell
from pipelines.preset import list_presets, preset_params
from pipelines.results.commands import recorded_params
from pipelines.results.costs import weights
from pipelines.results.reading import existing, read

CODE = (
    "convs2s", "pipelines", "experiments/base.yaml", "experiments/presets", "dvc.yaml", "pyproject.toml",
    "constraints.txt",
)  # fmt: skip
"""Files that the commit identifies; params.yaml itself is recorded."""
SHOWN = 5  # maximum number of stages or files in an error
SIGNATURES, TEST_SET = Path("data/evaluation/signatures.json"), Path("data/evaluation/test_set.json")
REPRODUCE = "run dvc repro, which makes the outputs of all stages, then record"


def origin_of(root: Path, workspace: Path) -> dict[str, Any]:
    """Return where the results of a workspace come from; raise ValueError if that is uncertain."""
    params = load_params(workspace / "params.yaml")
    return {
        "preset": preset_of(params.package.name, root / "experiments"),
        "params": recorded_params(params),
        "commit": commit(root),
        "signatures": read(workspace / SIGNATURES, REPRODUCE),
        "test_set": str(SetIdentity.read(existing(workspace / TEST_SET, REPRODUCE))),
    }


def commit(root: Path) -> str:
    """Return the commit that is checked out; raise ValueError if the code differs from it."""
    found = shell.run("git", "rev-parse", "HEAD", cwd=root)
    if changed := shell.run("git", "status", "--porcelain", "--", *CODE, cwd=root):
        names = listed([line[3:] for line in changed.split("\n")])
        wanted = "Wanted committed code: commit it (git commit), or undo the changes."
        raise ValueError(f"Code differs from commit {found[:9]}: {names}. {wanted}")
    return found


def stale_stages(root: Path) -> list[str]:
    """Return the stages that are not up to date; raise ValueError if `dvc status` fails."""
    try:
        with Repo(str(root)) as repo:
            return sorted(name.rpartition(":")[2] for name in repo.status())  # after another dvc.yaml's path
    except DvcException as error:
        raise ValueError(f"dvc status failed: {error}") from error


def check_fresh(root: Path) -> None:
    """Raise ValueError if a stage is not up to date with params.yaml, code and data."""
    if stale := stale_stages(root):
        found = f"Results are not up to date with params.yaml, code and data: {listed(stale)}"
        raise ValueError(f"{found}. Run dvc repro, then record.")


def fetch(root: Path, name: str, folder: Path) -> Path:
    """Copy an experiment's files for a record; raise ValueError if they are lost or the code differs."""
    revision = shell.run("git", "for-each-ref", "--format=%(objectname)", f"refs/exps/*/*/{name}", cwd=root)
    if not revision:
        raise ValueError(f"there is no experiment {name}; wanted one that dvc exp list shows. Run the sweep.")
    head = commit(root)
    if changed := shell.run("git", "diff", "--name-only", head, revision, "--", *CODE, cwd=root).split():
        found = f"experiment {name}: its code differs from commit {head[:9]} in {listed(changed)}"
        raise ValueError(f"{found}. Wanted a sweep of committed code: commit, and run it again.")
    try:
        files = DVCFileSystem(str(root), rev=revision)
        # `weights` is lazy: it reads params.yaml after that has been copied.
        for path in chain([folder / one for one in ("params.yaml", SIGNATURES, TEST_SET)], weights(folder)):
            path.parent.mkdir(parents=True, exist_ok=True)
            files.get_file(path.relative_to(folder).as_posix(), str(path))
    except (DvcException, OSError) as error:
        found = f"experiment {name}: its outputs cannot be read"
        raise ValueError(f"{found} ({error}); run the sweep again.") from error
    return folder


def listed(names: Sequence[str]) -> str:
    return ", ".join(names[:SHOWN]) + (f" and {len(names) - SHOWN} more" if len(names) > SHOWN else "")


def preset_of(wanted: str, experiments: Path) -> str:
    """Return the preset with this `package.name`; raise ValueError if there is none."""
    others = []
    # Most presets are named after their file, so try that one first.
    for name in sorted(list_presets(experiments), key=lambda name: name != wanted):
        if (found := preset_params(name, experiments).package.name) == wanted:
            return name
        others.append(repr(found))
    found = f"params.yaml: package.name: found {wanted!r}, which no preset has: nobody else could run it"
    raise ValueError(f"{found}. Wanted one of {', '.join(others)}, or a new preset.")
