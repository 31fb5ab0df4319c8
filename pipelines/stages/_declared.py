"""What dvc.yaml declares for a stage: its values and files, which must not change while the stage runs.

With the result, DVC records them as they are when the stage ends, not as the stage has read them.
"""

import contextlib
import functools
import json
import os
import re
from collections.abc import Iterator, Sequence
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from convs2s.config.load import flatten_values, parse_params, parse_yaml, read_text
from convs2s.config.params import Params

PARAMS = Path("params.yaml")


@contextlib.contextmanager
def unchanged(item: str) -> Iterator[Params]:
    """Yield params.yaml, read once; at the end, raise a ValueError if what the item declares has changed."""
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
    """Return, for each value and file that a stage item declares, a text that changes when it does.

    For a file, this is its size, time and inode, by which DVC, too, notices a change.
    """
    values, files = declared(item, parse_yaml(text, str(PARAMS)))
    state = {name: json.dumps(value, default=str) for name, value in flatten_values(values).items()}
    for path in files:
        stat = path.stat()
        state[str(path)] = f"{stat.st_size} {stat.st_mtime_ns} {stat.st_ino}"
    return state


def declared(item: str, params: Any) -> tuple[dict[str, Any], list[Path]]:
    """Return the values and the files that dvc.yaml declares for a stage item, such as train@1."""
    name, item_value = split_item(item)
    stage = parse_stages(read_text(Path("dvc.yaml")))[name]
    keys = [fill_templates(key, params, item_value) for key in stage.get("params", ())]
    dependencies = [Path(fill_templates(path, params, item_value)) for path in stage.get("deps", ())]
    ignored = read_text(Path(".dvcignore")).split()
    files = [
        path for dependency in dependencies for path in walk(dependency) if not is_ignored(path, ignored)
    ]
    return {key: find_value(key, params) for key in keys}, files


@functools.cache
def parse_stages(text: str) -> dict[str, Any]:
    """Return the stages in the text of dvc.yaml; cached, as a stage needs them twice, 0.1 s each time."""
    stages: dict[str, Any] = parse_yaml(text, "dvc.yaml")["stages"]
    return stages


def split_item(item: str) -> tuple[str, str]:
    """Return the name of a stage and the value of its item: of `train@1`, train and 1.

    The value is empty without one. DVC may name the file first: `dvc.yaml:train@1`.
    """
    name, _, value = item.rpartition(":")[2].partition("@")
    return name, value


def fill_templates(text: str, params: Any, item_value: str) -> str:
    """Return a text of dvc.yaml with values in place of its templates.

    With the item value 1, `data/trained/${item.seed}` becomes data/trained/1, whatever the matrix names it;
    `${train.start_from}` becomes that value of params.yaml, such as data/none.
    """

    def value_of(template: re.Match[str]) -> str:
        key = template[1]
        return item_value if key.startswith("item.") else str(find_value(key, params))

    return re.sub(r"\$\{(.*?)\}", value_of, text)


def find_value(key: str, params: Any) -> Any:
    """Return the value of a key as dvc.yaml writes it: `train`, a section; `train.dropout`; `seeds[0]`."""
    value = params
    for part in re.findall(r"\w+", key):
        value = value[int(part) if part.isdigit() else part]
    return value


def walk(dependency: Path) -> Iterator[Path]:
    """Yield the file itself, or all files in a folder and its subfolders; nothing if there is neither."""
    if dependency.is_file():
        yield dependency
    for folder, _, names in os.walk(dependency):
        yield from (Path(folder, name) for name in names)


def is_ignored(path: Path, patterns: Sequence[str]) -> bool:
    """Return whether .dvcignore excludes a file or a folder above it: __pycache__, with all in it; *.pyc."""
    return any(fnmatch(part, pattern) for part in path.parts for pattern in patterns)
