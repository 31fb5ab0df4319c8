"""Check values against a schema; every fault gets a line: dotted name, what was expected, what was found."""

import difflib
import re
from collections.abc import Iterable, Sequence
from typing import Any, TypeVar, get_args

from pydantic import BaseModel, ValidationError

from convs2s.config.download import PATTERNS

SchemaT = TypeVar("SchemaT", bound=BaseModel)

LONGEST = 200
"""Characters of a value that a message shows; longer values are shortened."""


def validate(schema: type[SchemaT], content: object, claim: str) -> SchemaT:
    """Return content as an instance of its schema.

    Args:
        claim: what to say if it is not one, before the faults: "params.yaml is invalid".
    """
    try:
        return schema.model_validate(content)
    except ValidationError as error:
        faults = "\n".join(f"  {describe(fault, schema)}" for fault in error.errors())
        raise ValueError(f"{claim}:\n{faults}") from None


def describe(fault: Any, schema: type[BaseModel]) -> str:
    """Return one line for a pydantic error."""
    name, known = locate(fault["loc"], schema)
    value, context = quote(fault["input"]), fault.get("ctx", {})
    match fault["type"]:
        case "extra_forbidden":
            text = f"unknown key, found {value}; {suggest(name.rpartition('.')[2], known)}"
        case "missing":
            text = "missing"
        case "value_error":
            text = str(context["error"])
        case "string_pattern_mismatch":
            text = f"expected {PATTERNS.get(context['pattern'], context['pattern'])}, found {value}"
        case "union_tag_invalid":
            text = f"expected kind {context['expected_tags']}, found {context['tag']!r}"
        case "too_short":
            text = f"expected at least {context['min_length']} item(s), found {value}"
        case _:
            expected = fault["msg"].replace("Input should be", "expected").replace("a valid ", "a ")
            text = f"{expected.replace('a integer', 'an integer')}, found {value}"
    # A rule that spans sections has no key; its message names them.
    return f"{name}: {text}" if name else text


def locate(location: Sequence[str | int], schema: type[BaseModel]) -> tuple[str, set[str]]:
    """Return the dotted name of a place in a file, and the keys that the schema allows there."""
    names: list[str] = []
    owners = models = {schema}
    for part in location:
        if of_kind := {model for model in models if part in kinds(model)}:
            models = of_kind  # the tag of a union, which is no key of the file
            continue
        names.append(str(part))
        if isinstance(part, str):
            owners = models
            fields = [model.model_fields[part] for model in owners if part in model.model_fields]
            models = {model for field in fields for model in models_in(field.annotation)}
    return ".".join(names), {key for model in owners for key in model.model_fields}


def kinds(model: type[BaseModel]) -> tuple[Any, ...]:
    """Return the values of a model's key `kind`, by which a union chooses it."""
    return get_args(model.model_fields["kind"].annotation) if "kind" in model.model_fields else ()


def models_in(annotation: Any) -> set[type[BaseModel]]:
    """Return the models in an annotation such as `list[A | B]`."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return {annotation}
    return {model for part in get_args(annotation) for model in models_in(part)}


def suggest(unknown: str, known: Iterable[str]) -> str:
    """Return the end of a message about an unknown name: the most similar known name, or else all of them."""
    near = difflib.get_close_matches(unknown, sorted(known), n=1)
    return f"did you mean {near[0]}?" if near else "known here: " + ", ".join(sorted(known))


def quote(value: object) -> str:
    """Return a value for a message: without a URL's password or query, or a long value's middle."""
    text = re.sub(r"(://)[^/\s'\"]*@", r"\1...@", repr(value))
    text = re.sub(r"(://[^?\s'\"]*\?)[^\s'\"]+", r"\1...", text)
    return text if len(text) <= LONGEST else f"{text[: LONGEST // 2]} ... {text[-LONGEST // 2 :]}"
