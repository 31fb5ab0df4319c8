"""The stages that rerun when a key of params.yaml is edited, from dvc.yaml.

The two quick ones that take values and code for all others are left out.
"""

import re
from collections.abc import Mapping
from typing import Any

Stages = Mapping[str, Any]
"""The content of `stages:` in dvc.yaml."""


def first_stages(key: str, stages: Stages) -> list[str]:
    """Return the stages that a key reruns directly and that depend on none of the others.

    Later stages rerun, too, unless their inputs come out unchanged.

    Args:
        key: dotted, such as train.dropout.
    """
    direct = [name for name, stage in stages.items() if depends(key, stage)]
    return [name for name in direct if not any(name in following(other, stages) for other in direct)]


def depends(key: str, stage: Mapping[str, Any]) -> bool:
    """Return whether a stage lists a key or its section, or has an instance for each of its values."""
    entries = [key for file in stage.get("params", ()) for keys in file.values() for key in keys or ()]
    listed = [value for entry in entries for value in expanded(entry, stage)]
    used = re.findall(r"\$\{([\w.]+)", " ".join([*map(str, stage.get("deps", ())), str(stage.get("matrix"))]))
    return any(key == name or key.startswith(f"{name}.") for name in (*listed, *used))


def expanded(entry: str, stage: Mapping[str, Any]) -> list[str]:
    """Return an entry for each item of the stage's matrix."""
    for name, values in stage.get("matrix", {}).items():
        if f"${{item.{name}}}" in entry and isinstance(values, list):
            return [entry.replace(f"${{item.{name}}}", value) for value in values]
    return [entry]


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
