"""The values that a key of params.yaml may have, in words, from pydantic's JSON schema."""

from collections.abc import Mapping
from typing import Any

from convs2s.config.section import COUNTABLE

Schema = Mapping[str, Any]
NAMES = {
    "boolean": "true or false",
    "string": "text",
    "null": "null",
    "integer": "integer",
    "number": "number",
}
BOUNDS = {
    "minimum": "at least", "exclusiveMinimum": "above", "maximum": "at most", "exclusiveMaximum": "below",
}  # fmt: skip


def kind(schema: Schema) -> str:
    """Return the type of a value, such as "integer (at least 1) or null"."""
    if "$ref" in schema:
        return f"keys of {referred(schema)}"
    if options := schema.get("anyOf") or schema.get("oneOf"):
        return " or ".join(dict.fromkeys(kind(option) for option in options))
    if "enum" in schema or "const" in schema:
        return " or ".join(f"`{value}`" for value in schema.get("enum", [schema.get("const")]))
    match schema["type"]:
        case "array":
            return array(schema)
        case "object":
            return f"mapping to {kind(schema['additionalProperties'])}"
        case name:
            found = ", ".join(bounds(schema))
            return f"{NAMES[name]} ({found})" if found else NAMES[name]


def array(schema: Schema) -> str:
    """Return the kind of a list."""
    if "prefixItems" in schema:
        return f"list of {len(schema['prefixItems'])}: {kind(schema['prefixItems'][0])}"
    if "discriminator" in schema["items"]:
        return f"list of [sources](#sources){filled(schema)}"
    return f"list{filled(schema)}: {kind(schema['items'])}"


def filled(schema: Schema) -> str:
    """Return ", not empty" if a list may not be empty."""
    return ", not empty" if schema.get("minItems") else ""


def bounds(schema: Schema) -> list[str]:
    """Return the bounds of a number, except the limit of all integers, or the pattern of a string."""
    found = {key: schema[key] for key in BOUNDS if key in schema and schema[key] != COUNTABLE}
    pattern = [f"as `{schema['pattern']}`"] if "pattern" in schema else []
    return [f"{BOUNDS[key]} {value:,}" for key, value in found.items()] + pattern


def referred(schema: Schema) -> str:
    """Return a link to the section of the page that describes a class."""
    name = schema["$ref"].rpartition("/")[2]
    return f"[{name}](#{name.lower()})"
