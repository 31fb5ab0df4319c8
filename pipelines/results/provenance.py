"""Where results come from: commit, preset, test set. Results of unknown origin are not recorded."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from dvc.exceptions import DvcException
from dvc.repo import Repo

from convs2s.config.load import load_params
from convs2s.config.params import Params
from convs2s.score.identity import SetIdentity
from pipelines import shell
from pipelines.preset.render import preset_names, preset_params
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
REPRODUCE = "run dvc repro, which makes the outputs of all stages, then record"


class NotRecorded(ValueError):
    """Nothing is recorded; the message says why, and what to do."""


def origin_of(workspace: Path, experiments: Path) -> dict[str, Any]:
    """Return preset, changes, signatures and test set of the outputs in a workspace, or in a copy of them."""
    evaluation = workspace / "data" / "evaluation"
    signatures = read(evaluation / "signatures.json", REPRODUCE)
    test_set = SetIdentity.read(existing(evaluation / "test_set.json", REPRODUCE))
    preset, changes = preset_of(load_params(workspace / "params.yaml"), experiments)
    return {"preset": preset, "changes": changes, "signatures": signatures, "test_set": str(test_set)}


def commit(root: Path) -> str:
    """Return the commit that is checked out; raise NotRecorded if the code differs from it."""
    found = shell.run("git", "rev-parse", "HEAD", cwd=root)
    if changed := shell.run("git", "status", "--porcelain", "--", *CODE, cwd=root):
        names = listed(line[3:] for line in changed.split("\n"))
        message = "Wanted committed code: commit it (git commit), or undo the changes."
        raise NotRecorded(f"Code differs from commit {found[:9]}: {names}. {message}")
    return found


def check_fresh(root: Path) -> None:
    """Raise NotRecorded if a stage is not up to date with params.yaml, code and data."""
    try:
        with Repo(str(root)) as repo:
            stale = sorted(repo.status())
    except DvcException as error:
        raise NotRecorded(f"dvc status failed: {error}") from error
    if stale:
        found = f"Results are not up to date with params.yaml, code and data: {listed(stale)}"
        raise NotRecorded(f"{found}. Run dvc repro, then record.")


def listed(names: Iterable[str]) -> str:
    """Return the first few names."""
    every = list(names)
    return ", ".join(every[:SHOWN]) + (f" and {len(every) - SHOWN} more" if len(every) > SHOWN else "")


def preset_of(params: Params, experiments: Path) -> tuple[str, dict[str, Any]]:
    """Return the preset of the same `package.name`, and all values that differ from it, by dotted name.

    Raises:
        NotRecorded: if there is none.
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
    raise NotRecorded(
        f"params.yaml: package.name: found {params.package.name!r}, which no preset has: nobody "
        f"else could run it. Wanted one of {', '.join(map(repr, names.values()))}, or a new preset."
    )
