"""Read and check YAML and JSON; an error names the file and the key."""

import json
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError
from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError


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
        form = "YAML" if path.suffix == ".yaml" else "JSON"
        raise ValueError(f"{path} is not valid {form}: {error}. Correct it.") from error


def checked(schema: Any, content: object, path: Path) -> Any:
    """Return the content of a file as an instance of its schema; raise ValueError with all faults."""
    try:  # via JSON, where strict schemas still accept a list for a tuple
        return TypeAdapter(schema).validate_json(json.dumps(content, default=str))
    except ValidationError as error:
        faults = "\n".join(f"  {describe(fault)}" for fault in error.errors())
        raise ValueError(f"{path} has {error.error_count()} fault(s):\n{faults}") from None


def describe(fault: Any) -> str:
    """Return one line for a pydantic error: dotted key, what was found, what was wanted."""
    tagged = fault["loc"][:1] in {("run",), ("sweep",)}  # with the kind of a record, which is not a key
    keys = [str(part) for part in fault["loc"][tagged:]]
    wanted = {
        "missing": "missing; add it",
        "value_error": str(fault.get("ctx", {}).get("error")),
        "extra_forbidden": f"found {fault['input']!r}, unknown key; remove it, or correct its name",
        "string_type": f"found {fault['input']!r}, wanted text; put it in quotes, with all its digits",
    }
    if fault["type"] == "string_pattern_mismatch":
        wanted[fault["type"]] = (
            f"found {fault['input']!r}, wanted text that matches {fault['ctx']['pattern']}"
        )
    other = f"found {fault['input']!r}, {fault['msg'].replace('Input should be', 'wanted')}"
    return f"{'.'.join(keys) or 'the file'}: {wanted.get(fault['type'], other)}"
