"""Every parameter as a page of the docs, from the schema: `python -m pipelines.reference` writes it."""

import json
import textwrap
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from convs2s.config.load import load_params
from convs2s.config.params import Params
from convs2s.config.section import COUNTABLE

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "all-parameters.md"
HEAD = """\
# Every parameter

Each key of `params.yaml`: its values, default and meaning. [experiments/base.yaml](../experiments/base.yaml)
has them as they are written, `python -m pipelines.check --list` shows the values in your `params.yaml`, and
[parameters.md](parameters.md) explains how to use them, and what runs again after an edit.
"""
NAMES = {"boolean": "true or false", "string": "text"}  # others are named as in the schema
BOUNDS = {
    "minimum": "at least", "exclusiveMinimum": "above", "maximum": "at most", "exclusiveMaximum": "below",
}  # fmt: skip
LONGEST = 60  # characters of a default to show


def write_page() -> str:
    """Return the page as Markdown: a list per section, then one per kind of source and other class."""
    schema = Params.model_json_schema()
    classes = schema["$defs"]
    defaults = load_params(ROOT / "experiments" / "base.yaml").model_dump(mode="json")
    names = {
        key: field["$ref"].rpartition("/")[2]
        for key, field in schema["properties"].items()
        if "$ref" in field
    }
    lines = [HEAD]
    for key, field in schema["properties"].items():
        if key in names:
            lines += ["", f"## {key}", "", *describe_class(classes[names[key]], f"{key}.", defaults[key])]
        else:
            lines += [describe_key(key, field, defaults)]
    kinds = "The kinds of entry in `download.train.sources` and those of `valid`, `development` and `test`."
    lines += ["", "## Sources", "", kinds]
    for name in sorted(classes.keys() - names.values()):
        lines += ["", f"### {name}", "", *describe_class(classes[name], "", {})]
    return "\n".join(lines) + "\n"


def describe_class(schema: Mapping[str, Any], prefix: str, defaults: Mapping[str, Any]) -> list[str]:
    """Return the meaning of a class of the schema, and a line for each of its keys."""
    keys = [describe_key(f"{prefix}{key}", field, defaults) for key, field in schema["properties"].items()]
    return [" ".join(schema["description"].split()), "", *keys]


def describe_key(name: str, field: Mapping[str, Any], defaults: Mapping[str, Any]) -> str:
    """Return a line on a key: its type, its default if it has one, and its meaning."""
    key, meaning = name.rpartition(".")[2], " ".join(field.get("description", "").split())
    default = textwrap.shorten(json.dumps(defaults.get(key)), LONGEST, placeholder=" ...")
    values = name_type(field) + (f"; default `{default}`" if key in defaults else "")
    return f"- `{name}`: {values}. {meaning}".rstrip(". ") + "."


def name_type(schema: Mapping[str, Any]) -> str:
    """Return the type of a value in words, such as "integer (at least 1) or null"."""
    match schema:
        case {"$ref": reference}:
            name = reference.rpartition("/")[2]
            text = f"keys of [{name}](#{name.lower()})"
        case {"anyOf": options} | {"oneOf": options}:
            text = " or ".join(dict.fromkeys(name_type(option) for option in options))
        case {"enum": values}:
            text = " or ".join(f"`{value}`" for value in values)
        case {"const": value}:
            text = f"`{value}`"
        case {"prefixItems": items}:
            text = f"list of {len(items)}: {name_type(items[0])}"
        case {"items": items}:
            of = " of [sources](#sources)" if "discriminator" in items else f": {name_type(items)}"
            text = f"list{', not empty' if schema.get('minItems') else ''}{of}"
        case _:
            bounds = [
                f"{words} {schema[key]:,}"
                for key, words in BOUNDS.items()
                if schema.get(key, COUNTABLE) != COUNTABLE
            ]
            bounds += [f"as `{schema['pattern']}`"] if "pattern" in schema else []
            text = NAMES.get(schema["type"], schema["type"]) + (f" ({', '.join(bounds)})" if bounds else "")
    return text


if __name__ == "__main__":
    PAGE.write_text(write_page(), encoding="utf-8")
