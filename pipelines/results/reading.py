"""Files of the folder results, read and checked: a fault is told with file and key."""

import json
from pathlib import Path
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError
from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

T = TypeVar("T")


def read_checked(schema: TypeAdapter[T], path: Path) -> T:
    """Read YAML or JSON, by the file's ending.

    Raises:
        FileNotFoundError: if there is no such file.
        ValueError: if it is neither, or a key is unknown, missing or ill-typed.
    """
    if not path.is_file():
        raise FileNotFoundError(f"{path} does not exist; wanted a file of results/: git checkout it.")
    text = path.read_text(encoding="utf-8")
    try:
        content = YAML(typ="safe", pure=True).load(text) if path.suffix == ".yaml" else json.loads(text)
    except (YAMLError, ValueError) as error:
        what = path.suffix[1:].upper()
        raise ValueError(f"{path} is not valid {what}: {error}. Correct it, or record it again.") from error
    return checked(schema, content, path)


def checked(schema: TypeAdapter[T], content: object, path: Path) -> T:
    """Return content as the schema has it.

    Args:
        path: of the file that it is from or for.

    Raises:
        ValueError: if a key is unknown, missing or ill-typed.
    """
    try:
        # By way of JSON, whose lists may be tuples.
        return schema.validate_json(json.dumps(content))
    except ValidationError as error:
        faults = "\n".join(f"  {describe(fault)}" for fault in error.errors())
        raise ValueError(f"{path} has {error.error_count()} fault(s):\n{faults}") from None


def describe(fault: Any) -> str:
    """Return one line for a pydantic error: dotted name, what was found, what was wanted."""
    keys = [str(part) for part in fault["loc"]]
    if keys and keys[0] in {"run", "table"}:  # the kind of record, which is no key
        del keys[0]
    name = ".".join(keys) or "the file"
    match fault["type"]:
        case "extra_forbidden":
            return f"{name}: unknown key, found {fault['input']!r}; take it out, or correct its name"
        case "missing":
            return f"{name}: missing; record it again, or put it in"
        case "value_error":
            return f"{name}: {fault['ctx']['error']}"
        case _:
            return f"{name}: found {fault['input']!r}, {fault['msg'].replace('Input should be', 'wanted')}"
