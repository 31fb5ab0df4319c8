"""Every parameter as a page of the docs, from the schema: `python -m pipelines.reference` writes it."""

import json
import re
import textwrap
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from convs2s.config.load import load_params, parse_yaml
from convs2s.config.params import Params
from convs2s.config.section import COUNTABLE
from pipelines.meanings import meanings, sections

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "all-parameters.md"
HEAD = """\
# Every parameter

Each key of `params.yaml`: its values, default and meaning, and the stages that read it and run again after
an edit. [experiments/base.yaml](../experiments/base.yaml) has them as they are written, `python -m
pipelines.check --list` shows the values in your `params.yaml`, and [parameters.md](parameters.md) explains
how to use them.
"""
NAMES = {"boolean": "true or false", "string": "text"}  # others are named as in the schema
BOUNDS = {
    "minimum": "at least", "exclusiveMinimum": "above", "maximum": "at most", "exclusiveMaximum": "below",
}  # fmt: skip
LONGEST = 60  # characters of a default to show


def write_page() -> str:
    """Return the page as Markdown: a list per section, then one per kind of source and other class."""
    schema = Params.model_json_schema()
    base = load_params(ROOT / "experiments" / "base.yaml").model_dump(mode="json")
    stages = parse_yaml((ROOT / "dvc.yaml").read_text(encoding="utf-8"), "dvc.yaml")["stages"]
    names = {
        name: field["$ref"].rpartition("/")[2]
        for name, field in schema["properties"].items()
        if "$ref" in field
    }
    lines = [HEAD]
    for key, kind, meaning in list_keys(schema, "Params"):
        if key not in names:
            readers = ", ".join(list_readers(key, stages))
            lines += [f"- `{key}`: {kind}; default `{json.dumps(base[key])}`; read by {readers}. {meaning}"]
    lines += [""]
    for section, name in names.items():
        lines += [f"## {section}", "", describe(schema["$defs"][name]), ""]
        for key, kind, meaning in list_keys(schema["$defs"][name], name):
            default = textwrap.shorten(json.dumps(base[section][key]), LONGEST, placeholder=" ...")
            readers = ", ".join(list_readers(f"{section}.{key}", stages)) or "no stage"
            lines += [f"- `{section}.{key}`: {kind}; default `{default}`; read by {readers}. {meaning}"]
        lines += [""]
    lines += [
        "## Sources",
        "",
        "The kinds of entry in `download.train.sources` and those of `valid`, `development` and `test`.",
        "",
    ]
    for name in sorted(schema["$defs"].keys() - names.values()):
        lines += [f"### {name}", "", describe(schema["$defs"][name]), ""]
        for key, kind, meaning in list_keys(schema["$defs"][name], name):
            lines += [f"- `{key}`: {kind}. {meaning}".rstrip(". ") + "."]
        lines += [""]
    return "\n".join(lines).rstrip("\n") + "\n"


def list_keys(content: Mapping[str, Any], name: str) -> Iterator[tuple[str, str, str]]:
    """Yield each key of a class with its type in words and its meaning."""
    texts = meanings(sections()[name])
    for key, field in content["properties"].items():
        yield key, name_type(field), texts.get(key, "")


def list_readers(key: str, stages: Mapping[str, Any]) -> list[str]:
    """Return the stages that depend on a key or its section, or have an instance for each of its values.

    An edit reruns them, and later stages unless their inputs come out unchanged.
    """
    found = []
    for name, stage in stages.items():
        text = f"{stage.get('deps', ())} {stage.get('matrix')}"
        splits = (stage.get("matrix") or {}).get("split", [""])
        used = [one.replace("${item.split}", split) for one in stage.get("params", ()) for split in splits]
        used += re.findall(r"\$\{([\w.]+)", text)
        if any(key == one or key.startswith(f"{one}.") for one in used):
            found.append(name)
    return found


def describe(content: Mapping[str, Any]) -> str:
    """Return the docstring of a class on one line."""
    return " ".join(content["description"].split())


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
