"""The DAG as DVC sees it: stage items, their parents, and the settings for running them from dvc.yaml."""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dvc.dependency.param import ParamsDependency
from dvc.repo import Repo
from dvc.stage import PipelineStage
from networkx import lexicographical_topological_sort  # type: ignore[import-untyped]

from convs2s.config.load import flatten_values, parse_yaml, read_text
from pipelines.stages._declared import find_value

HOURS = 24.0  # default deadline of a stage, if its `meta` sets none


@dataclass(frozen=True)
class Stage:
    """A stage item of a workspace, which is a clone with its own parameters; or a .dvc file."""

    name: str  # as DVC names it: train@2 or data/own/news.dvc
    command: str  # empty for a .dvc file
    parents: frozenset[str]  # names of the stages whose outputs it reads
    gpus: int  # number of GPUs it uses on a machine that has any; 0 for a CPU stage
    hours: float  # deadline
    retries: tuple[float, ...]  # seconds to wait before each retry
    signature: str  # equal for stages of two workspaces that compute the same thing
    root: Path  # of its workspace
    label: str = ""  # of its workspace, unique within a run
    is_idle: bool = False  # with these parameters it has nothing to compute, and ends in seconds

    @property
    def kind(self) -> str:
        """Name without the item: train for train@2."""
        return self.name.split("@")[0]

    def title(self, name: str = "") -> str:
        """Return the name of its task run, or of that of another stage in its workspace."""
        return f"{name or self.name} {self.label}".strip()


def read_graph(root: Path, label: str = "") -> dict[str, Stage]:
    """Return all stage items, parents first."""
    stages: dict[str, Stage] = {}
    with Repo(str(root)) as repo:
        for stage, names in _ordered(repo):
            parents = [stages[name] for name in names]
            stages[stage_name(stage)] = _stage(stage, parents, root, label)
    return stages


def up_to_date(root: Path) -> set[str]:
    """Return the stages that are up to date and whose ancestors all are, as fast as one `dvc repro` would."""
    fresh = set[str]()
    with Repo(str(root)) as repo, repo.lock:
        for stage, parents in _ordered(repo):
            if parents <= fresh and not stage.changed():
                fresh.add(stage_name(stage))
    return fresh


def _ordered(repo: Repo) -> Iterator[tuple[Any, set[str]]]:
    """Yield DVC's stages, parents first, and the names of their parents."""
    children = repo.index.graph.reverse()  # DVC's edges point from a stage to its parents
    for stage in lexicographical_topological_sort(children, key=stage_name):
        yield stage, {stage_name(parent) for parent in children.predecessors(stage)}


def stage_name(stage: Any) -> str:
    """Return the name of a stage item of dvc.yaml, or the path of a .dvc file from the root."""
    return str(stage.name) if isinstance(stage, PipelineStage) else str(stage.path_in_repo)


def _stage(stage: Any, parents: Sequence[Stage], root: Path, label: str) -> Stage:
    name = stage_name(stage)
    meta = stage.meta or {}
    values = {
        key: value
        for dep in stage.deps
        if isinstance(dep, ParamsDependency)
        for key, value in dep.read_params().items()
    }
    facts = [name, stage.cmd, values, sorted(parent.signature for parent in parents)]
    return Stage(
        name=name,
        command=stage.cmd or "",
        parents=frozenset(parent.name for parent in parents),
        gpus=count_gpus(meta, root),
        hours=float(meta.get("hours", HOURS)),
        retries=tuple(float(delay) for delay in meta.get("retries", ())),
        signature=hashlib.sha256(json.dumps(facts, sort_keys=True, default=str).encode()).hexdigest(),
        root=root,
        label=label,
        is_idle=is_idle(meta, values),
    )


def count_gpus(meta: Mapping[str, Any], root: Path) -> int:
    """Return the GPUs that a stage uses, by its `meta`, which may name a key of params.yaml as a limit."""
    gpus = int(meta.get("gpus", 0))
    if "gpus_at_most" not in meta:
        return gpus
    path = root / "params.yaml"
    values = flatten_values(parse_yaml(read_text(path), str(path)))
    return min(gpus, values.get(meta["gpus_at_most"]) or gpus)


def is_idle(meta: Mapping[str, Any], values: Mapping[str, Any]) -> bool:
    """Return whether a stage has nothing to compute, by its `meta` and the values that it lists."""

    def has(name: str, value: Any) -> bool:
        """Return whether a key has this value; a stage lists the key itself or its section."""
        return bool((values[name] if name in values else find_value(name, values)) == value)

    return any(has(name, value) for name, value in meta.get("idle_with", {}).items()) or any(
        not has(name, value) for name, value in meta.get("idle_without", {}).items()
    )
