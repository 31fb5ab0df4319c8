"""The stages that rerun when a key of params.yaml is edited, from dvc.yaml and the table of values.

The two quick ones that take values and code for all others are left out.
"""

import re
from collections.abc import Mapping
from typing import Any

from pipelines.stages._params import PARAMS

Stages = Mapping[str, Any]
"""The content of `stages:` in dvc.yaml."""


def first_stages(key: str, stages: Stages) -> list[str]:
    """Return the stages that a key reruns directly and that depend on none of the others.

    Later stages rerun, too, unless their inputs come out unchanged.

    Args:
        key: dotted, such as train.dropout.
    """
    direct = [name for name, stage in stages.items() if depends(key, name, stage)]
    return [name for name in direct if not any(name in following(other, stages) for other in direct)]


def depends(key: str, name: str, stage: Mapping[str, Any]) -> bool:
    """Return whether a stage depends on a key or its section, or has an instance for each of its values."""
    listed = [one for item, keys in PARAMS.items() if item.partition("@")[0] == name for one in keys]
    used = re.findall(r"\$\{([\w.]+)", " ".join([*map(str, stage.get("deps", ())), str(stage.get("matrix"))]))
    return any(key == one or key.startswith(f"{one}.") for one in (*listed, *used))


def following(name: str, stages: Stages) -> set[str]:
    """Return the stages that need an output of a stage, directly or not."""
    found: set[str] = set()
    waiting = [name]
    while waiting:
        outputs = outs(stages[waiting.pop()])
        new = {
            other
            for other, stage in stages.items()
            if other not in found and any(meet(dep, out) for dep in stage.get("deps", ()) for out in outputs)
        }
        found |= new
        waiting += new
    return found


def outs(stage: Mapping[str, Any]) -> list[str]:
    """Return the paths that a stage writes."""
    entries = [entry for kind in ("outs", "metrics", "plots") for entry in stage.get(kind, ())]
    return [entry if isinstance(entry, str) else next(iter(entry)) for entry in entries]


def meet(dep: str, out: str) -> bool:
    """Return whether a dependency is an output, is in it, or contains it; seeds and splits match any."""
    pairs = zip(dep.split("/"), out.split("/"), strict=False)
    return all(one == other or "${item" in one or "${item" in other for one, other in pairs)
