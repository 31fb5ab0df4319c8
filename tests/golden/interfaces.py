"""What a version promises of its interfaces, as its own code has them: see README.md.

`python -m tests.golden.interfaces` makes those of the version as it is.
"""

import argparse
import dataclasses
import importlib
import inspect
import re
from importlib.metadata import version
from inspect import Parameter
from pathlib import Path
from typing import Any

from convs2s.base.files import write_json
from convs2s.cli import parser
from convs2s.serve.app import create_app
from convs2s.serve.batching import Batcher
from convs2s.serve.requests import RequestReader

FOLDER = Path(__file__).parent
PYTHON = FOLDER.parents[1] / "docs" / "python.md"
MARKS: dict[Any, str] = {Parameter.VAR_POSITIONAL: "*", Parameter.VAR_KEYWORD: "**"}
DIRECTIVE = re.compile(r"^\.\. auto(?:function|class):: (\S+)((?:\n +:members:.*)?)", re.MULTILINE)


def list_interfaces() -> dict[str, dict[str, list[str]]]:
    """Return the parts of each interface that the changelog promises to keep, by kind and name."""
    return {"python": list_python(), "commands": list_commands(), "http": list_http()}


def list_python() -> dict[str, list[str]]:
    """Return by dotted name, for all that docs/python.md documents, its parameters or its fields."""
    listed = {}
    for name, options in DIRECTIVE.findall(PYTHON.read_text(encoding="utf-8")):
        found = find(name)
        if not inspect.isclass(found):
            listed[name] = list_parameters(found)
            continue
        listed[name] = list_fields(found)
        if options:
            named = options.partition(":members:")[2].replace(",", " ").split()
            for member in named or list_methods(found):
                listed[f"{name}.{member}"] = list_parameters(getattr(found, member))
    return listed


def find(name: str) -> Any:
    """Return what a dotted name names: something in a module, or in a class of it."""
    module, _, last = name.rpartition(".")
    try:
        return getattr(importlib.import_module(module), last)
    except ModuleNotFoundError:
        return getattr(find(module), last)


def list_methods(kind: type) -> list[str]:
    """Return the names of a class's public methods."""
    return [
        name for name, member in vars(kind).items() if inspect.isfunction(member) and not name.startswith("_")
    ]


def list_fields(kind: type) -> list[str]:
    """Return the names of the fields of a data class or named tuple; none for another class."""
    if dataclasses.is_dataclass(kind):
        return [field.name for field in dataclasses.fields(kind)]
    return list(getattr(kind, "_fields", ()))


def list_parameters(function: Any) -> list[str]:
    """Return what a caller may give: such as "texts", "device, optional", "keyword prefixes, optional"."""
    listed = []
    for parameter in inspect.signature(function).parameters.values():
        is_required = parameter.default is parameter.empty and parameter.kind not in MARKS
        mark = "keyword " if parameter.kind is Parameter.KEYWORD_ONLY else MARKS.get(parameter.kind, "")
        listed.append(f"{mark}{parameter.name}{'' if is_required else ', optional'}")
    return listed


def command_parsers() -> dict[str, argparse.ArgumentParser]:
    """Return the parser of each command, of which argparse has no public list."""
    [commands] = [action for action in parser()._actions if isinstance(action, argparse._SubParsersAction)]
    return dict(commands.choices)


def list_commands() -> dict[str, list[str]]:
    """Return the options and arguments of each command."""
    return {
        name: [word for action in command._actions for word in (action.option_strings or [action.dest])]
        for name, command in command_parsers().items()
    }


def list_http() -> dict[str, list[str]]:
    """Return the fields of each route's request and of its answer, as OpenAPI describes them."""
    reader = RequestReader(keys=(), max_characters=1, max_lines=1)
    description = create_app([], reader, Batcher(1, threads=None)).openapi()

    def fields_of(content: dict[str, Any]) -> list[str]:
        """Return the fields of a JSON object, or of the objects in a list."""
        schema = content.get("application/json", {}).get("schema", {})
        schema = schema.get("items", schema)
        if "$ref" in schema:
            schema = description["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
        return sorted(schema.get("properties", {}))

    listed = {}
    for path, methods in description["paths"].items():
        for method, route in methods.items():
            name = f"{method.upper()} {path}"
            listed[f"{name}, request"] = fields_of(route.get("requestBody", {}).get("content", {}))
            listed[f"{name}, answer"] = fields_of(route["responses"]["200"]["content"])
    return listed


if __name__ == "__main__":
    write_json(FOLDER / f"interfaces-{version('convs2s')}.json", list_interfaces())
