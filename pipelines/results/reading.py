"""Read and check YAML and JSON; an error names the file and the key."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError
from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

T = TypeVar("T")


def existing(path: Path, remedy: str) -> Path:
    """Return the path of a file; raise FileNotFoundError with the remedy if there is none."""
    if not path.is_file():
        raise FileNotFoundError(f"{path} does not exist: {remedy}")
    return path


def read(path: Path, remedy: str = "it is in git: git checkout it") -> Any:
    """Return the content of a YAML or JSON file, by its suffix; raise ValueError if it is not valid."""
    text = existing(path, remedy).read_text(encoding="utf-8")
    try:
        return YAML(typ="safe", pure=True).load(text) if path.suffix == ".yaml" else json.loads(text)
    except (YAMLError, ValueError) as error:
        raise ValueError(f"{path} is not valid {path.suffix[1:].upper()}: {error}. Correct it.") from error


def checked(schema: type[T] | TypeAdapter[T], content: object, path: Path) -> T:
    """Return the content of a file by its schema; raise ValueError, with all faults, if it does not fit."""
    adapter = schema if isinstance(schema, TypeAdapter) else TypeAdapter(schema)
    try:
        return adapter.validate_json(json.dumps(content, default=str))  # strict, but a list may be a tuple
    except ValidationError as error:
        faults = "\n".join(f"  {describe(fault)}" for fault in error.errors())
        raise ValueError(f"{path} has {error.error_count()} fault(s):\n{faults}") from None


def describe(fault: Any) -> str:
    """Return one line for a pydantic error: dotted key, what was found, what was wanted."""
    keys = [str(part) for part in fault["loc"]]
    name = ".".join(keys[1:] if keys[:1] in (["run"], ["table"]) else keys) or "the file"  # a union's tag
    if fault["type"] == "missing":
        return f"{name}: missing; add it"
    if fault["type"] == "value_error":
        return f"{name}: {fault['ctx']['error']}"
    unknown = "unknown key; remove it, or correct its name"
    wanted = (
        unknown if fault["type"] == "extra_forbidden" else fault["msg"].replace("Input should be", "wanted")
    )
    return f"{name}: found {fault['input']!r}, {wanted}"


def flat(values: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return nested values by dotted name; a list is one value."""
    result: dict[str, Any] = {}
    for key, value in values.items():
        result |= flat(value, f"{prefix}{key}.") if isinstance(value, dict) else {f"{prefix}{key}": value}
    return result
