"""What dvc.yaml declares for a stage must stay as it is: DVC records what it finds at the stage's end."""

import contextlib
import functools
import json
import operator
import os
import re
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from convs2s.config.load import flatten_values, parse_params, parse_yaml, read_text
from convs2s.config.params import Params

PARAMS = Path("params.yaml")


@contextlib.contextmanager
def unchanged(item: str) -> Iterator[Params]:
    """Yield params.yaml, read once; at the end, raise a ValueError if what a stage item declares is other."""
    text = read_text(PARAMS)
    before = take_state(item, text)
    yield parse_params(text, str(PARAMS))
    after = take_state(item, read_text(PARAMS))
    changed = [name for name in before | after if before.get(name) != after.get(name)]
    if changed:
        changes = ", ".join(f"{name} {before.get(name)} -> {after.get(name)}" for name in changed)
        raise ValueError(
            f"changed while the stage ran, so its result is not recorded: {changes}. Undo that or keep it, "
            "and run the same command again. (A training that has ended comes back when it is undone.)"
        )


def take_state(item: str, text: str) -> dict[str, str]:
    """Return the values and files that a stage item declares, by name, as DVC tells whether they changed."""
    values, files = declared(item, parse_yaml(text, str(PARAMS)))
    shown = {name: json.dumps(value, default=str) for name, value in flatten_values(values).items()}
    stats = {str(path): path.stat() for path in files}
    return shown | {name: f"{stat.st_size} {stat.st_mtime_ns} {stat.st_ino}" for name, stat in stats.items()}


def declared(item: str, params: Any) -> tuple[dict[str, Any], list[Path]]:
    """Return the values and the files that dvc.yaml declares for a stage item, such as train@1."""
    name, _, value = item.rpartition(":")[2].partition("@")
    stage = parse_yaml(read_text(Path("dvc.yaml")), "dvc.yaml")["stages"][name]
    ignored = read_text(Path(".dvcignore")).split()

    def find(key: str) -> Any:
        parts = [int(part) if part.isdigit() else part for part in re.findall(r"\w+", key)]
        return value if parts[0] == "item" else functools.reduce(operator.getitem, parts, params)

    def resolve(part: str) -> list[str]:
        return [
            re.sub(r"\$\{(.*?)\}", lambda place: str(find(place[1])), text) for text in stage.get(part, ())
        ]

    paths = [Path(at, name) for dep in resolve("deps") for at, _, names in os.walk(dep) for name in names]
    paths += [Path(dep) for dep in resolve("deps") if Path(dep).is_file()]
    files = [
        path
        for path in paths
        if not any(fnmatch(part, pattern) for part in path.parts for pattern in ignored)
    ]
    return {key: find(key) for key in resolve("params")}, files
