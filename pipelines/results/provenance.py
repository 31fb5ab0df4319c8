"""Where results come from: commit, preset, hardware. A result of unknown origin is refused."""

import subprocess
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from dvc.exceptions import DvcException
from dvc.repo import Repo

from convs2s.config.params import Params
from convs2s.config.section import Section
from convs2s.train.cost import Session, read_sessions, target_tokens_per_second
from pipelines.preset.render import preset_names, preset_params
from pipelines.results.records import Cost

CODE = (
    "convs2s", "pipelines", "experiments/base.yaml", "experiments/presets", "dvc.yaml", "pyproject.toml",
    "constraints.txt",
)  # fmt: skip
"""What the repository's commit must tell of; params.yaml is told by preset and changes."""
OF_NO_EFFECT = {
    "download.folder", "train.seeds", "train.checkpoint_updates", "train.nodes", "train.rendezvous",
}  # fmt: skip
"""No changes to a preset: they say where files and machines are; seeds stand with the scores."""
SHOWN = 5  # stages or files that an error names


class Refused(ValueError):
    """Nothing is recorded; the message says why, and what to do."""


def command(root: Path, *arguments: str) -> str:
    """Run a program in the repository; return what it prints.

    Raises:
        Refused: if it fails, with its message.
    """
    done = subprocess.run(arguments, cwd=root, capture_output=True, text=True, check=False)
    if done.returncode:
        raise Refused(f"{' '.join(arguments[-3:])} failed: {done.stderr.strip()}")
    return done.stdout


def commit(root: Path) -> str:
    """Return the commit that is checked out.

    Raises:
        Refused: if the code differs from it.
    """
    found = command(root, "git", "rev-parse", "HEAD").strip()
    changed = command(root, "git", "status", "--porcelain", "--", *CODE).split("\n")[:-1]
    if changed:
        raise Refused(
            f"Code differs from commit {found[:9]}: {listed(line[3:] for line in changed)}. Wanted "
            "code that a commit tells of: commit it (git commit), or take the changes back."
        )
    return found


def check_fresh(root: Path) -> None:
    """See that all results are those of the present params.yaml, code and data.

    Raises:
        Refused: if a stage is not up to date, with its name.
    """
    try:
        with Repo(str(root)) as repo:
            stale = sorted(set(repo.status()) - {"results"})  # the page may wait for this very record
    except DvcException as error:
        raise Refused(f"dvc status failed: {error}") from error
    if stale:
        raise Refused(
            f"Results are not up to date with params.yaml, code and data: {listed(stale)}. "
            "Wanted results of what is here: run dvc repro, then record."
        )


def listed(names: Iterable[str]) -> str:
    """Return the first of some names."""
    every = list(names)
    return ", ".join(every[:SHOWN]) + (f" and {len(every) - SHOWN} more" if len(every) > SHOWN else "")


def preset_of(params: Params, experiments: Path) -> tuple[str, dict[str, Any]]:
    """Return the preset of the same `package.name`, and all values that differ from it, by dotted name.

    Raises:
        Refused: if there is none.
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
    raise Refused(
        f"params.yaml: package.name: found {params.package.name!r}, which no preset in "
        f"{experiments / 'presets'} has; others could not run it again. Wanted one of "
        f"{', '.join(map(repr, names.values()))}, or a new preset."
    )


def flat(values: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return nested values by dotted name; a list is one value."""
    result: dict[str, Any] = {}
    for key, value in values.items():
        result |= flat(value, f"{prefix}{key}.") if isinstance(value, dict) else {f"{prefix}{key}": value}
    return result


def cost_of(models: Iterable[str], kept: Sequence[Path]) -> Cost | None:
    """Return what the trainings of these models took, all together; None if it is not known of one.

    Args:
        models: as `file_name` names their costs; one that several experiments share counts once.
        kept: folders where trainings have left it.
    """
    sessions: list[Session] = []
    for name in in_order(models):
        found = next((s for folder in kept if (s := read_sessions(folder / name))), None)
        if found is None:
            return None
        sessions += found
    hours: dict[Any, float] = {}
    for one in sessions:
        hours[one.unit] = hours.get(one.unit, 0.0) + one.seconds * one.count / 3600
    speed = target_tokens_per_second(sessions)
    return Cost(
        hardware=in_order(f"{one.count} x {one.device}" for one in sessions),
        hours={unit: round(value, 4) for unit, value in hours.items()},
        torch=in_order(one.torch for one in sessions),
        target_tokens_per_second=None if speed is None else round(speed, 1),
    )


def in_order(values: Iterable[str]) -> tuple[str, ...]:
    """Return values, each once, in the order of their first place."""
    return tuple(dict.fromkeys(values))


def dumped(section: Section | None) -> dict[str, Any] | None:
    """Return a section as JSON has it; None stays None."""
    return None if section is None else section.model_dump(mode="json")
