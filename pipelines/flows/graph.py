"""The DAG as DVC knows it: stage items, what each needs, and what dvc.yaml says of how to run it."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dvc.exceptions import DvcException
from dvc.repo import Repo

HOURS = 24.0
"""Deadline of a stage whose `meta` names none."""


@dataclass(frozen=True)
class Stage:
    """A stage item.

    Attributes:
        name: as DVC names it: train@2.
        command: what it runs.
        parents: names of the stages whose outputs it takes.
        gpus: how many it takes where there are any; 0 for a stage of the CPU.
        hours: after which it is ended.
        retries: seconds to wait before each further attempt.
        work: folder of what it leaves while it runs and when it fails, if it has one.
        outputs: files and folders it writes, relative to the repository.
        travels: whether DVC's cache has all outputs, so that they come home from elsewhere.
        signature: equal for two stages, of two sets of parameters, that compute the same.
    """

    name: str
    command: str
    parents: frozenset[str]
    gpus: int
    hours: float
    retries: tuple[float, ...]
    work: str | None
    outputs: tuple[str, ...]
    travels: bool
    signature: str

    @property
    def kind(self) -> str:
        """Name without the item: train of train@2."""
        return self.name.split("@")[0]

    def output(self, name: str) -> str:
        """Return the path of the output with this file name.

        Raises:
            KeyError: if there is none.
        """
        for path in self.outputs:
            if path.rsplit("/", maxsplit=1)[-1] == name:
                return path
        raise KeyError(f"stage {self.name} has no output {name}, only {', '.join(self.outputs)}")


def read_graph(root: Path) -> dict[str, Stage]:
    """Return all stage items of dvc.yaml, parents before children.

    Raises:
        ValueError: if DVC cannot read dvc.yaml, params.yaml or dvc.lock, with DVC's reason.
    """
    try:
        with Repo(str(root)) as repo:
            graph = repo.index.graph
            stages: dict[str, Stage] = {}
            waiting = sorted(graph, key=lambda stage: str(stage.name))
            while waiting:
                ready = [s for s in waiting if all(p.name in stages for p in graph.successors(s))]
                for stage in ready:
                    stages[stage.name] = _stage(stage, {p.name for p in graph.successors(stage)}, stages)
                    waiting.remove(stage)
            return stages
    except DvcException as error:
        raise ValueError(f"DVC cannot read the pipeline in {root}: {error}") from error


def _stage(stage: Any, parents: set[str], before: Mapping[str, Stage]) -> Stage:
    meta = stage.meta or {}
    params = [[dep.def_path, dep.read_params()] for dep in stage.deps if hasattr(dep, "read_params")]
    facts = [stage.cmd, params, sorted(before[name].signature for name in parents)]
    return Stage(
        name=stage.name,
        command=stage.cmd,
        parents=frozenset(parents),
        gpus=int(meta.get("gpus", 0)),
        hours=float(meta.get("hours", HOURS)),
        retries=tuple(float(delay) for delay in meta.get("retries", ())),
        work=meta.get("work"),
        outputs=tuple(str(out.def_path) for out in stage.outs),
        travels=all(out.use_cache for out in stage.outs),
        signature=hashlib.sha256(json.dumps(facts, sort_keys=True, default=str).encode()).hexdigest(),
    )


def restrict(stages: Mapping[str, Stage], targets: Sequence[str]) -> dict[str, Stage]:
    """Return the targets and all they need; all stages if there are no targets.

    Args:
        targets: names of items (train@2) or of whole stages (train).

    Raises:
        ValueError: if there is no such stage; the message lists those there are.
    """
    wanted = [stage.name for stage in stages.values() if not targets or {stage.name, stage.kind} & {*targets}]
    unknown = set(targets) - {name for stage in stages.values() for name in (stage.name, stage.kind)}
    if unknown:
        raise ValueError(
            f"targets: found {', '.join(sorted(unknown))}, which dvc.yaml does not have. "
            f"Wanted some of: {', '.join(stages)}."
        )
    needed: set[str] = set()
    while wanted:
        name = wanted.pop()
        if name not in needed:
            needed.add(name)
            wanted.extend(stages[name].parents)
    return {name: stage for name, stage in stages.items() if name in needed}
