"""Check values against a schema; every fault gets a line: dotted name, what was expected, what was found."""

import difflib
import reprlib
from collections.abc import Iterable, Sequence
from typing import Any, TypeVar, get_args

from pydantic import BaseModel, ValidationError

from convs2s.config.download import PATTERNS

SchemaT = TypeVar("SchemaT", bound=BaseModel)


def validate(schema: type[SchemaT], content: object, claim: str) -> SchemaT:
    """Return content as an instance of its schema.

    Args:
        claim: what to say if it is not one, before the faults: "params.yaml is invalid".
    """
    try:
        return schema.model_validate(content)
    except ValidationError as error:
        raise ValueError(f"{claim}:\n{list_faults(error, schema)}") from None


def list_faults(error: ValidationError, schema: type[BaseModel] | None = None) -> str:
    """Return one line per fault; a schema serves to suggest which key an unknown one may have meant."""
    return "\n".join(f"  {describe(fault, schema)}" for fault in error.errors())


def describe(fault: Any, schema: type[BaseModel] | None) -> str:
    """Return one line for a pydantic error."""
    name = ".".join(map(str, fault["loc"]))
    value = reprlib.repr(fault["input"])
    match fault["type"]:
        case "extra_forbidden" | "unexpected_keyword_argument":
            *place, key = fault["loc"]
            hint = f"; {suggest(key, keys_at(place, schema))}" if schema else ""
            text = f"unknown key, found {value}{hint}"
        case "missing":
            text = "missing"
        case "value_error":
            text = str(fault["ctx"]["error"])
        case "string_pattern_mismatch":
            pattern = fault["ctx"]["pattern"]
            text = f"expected {PATTERNS.get(pattern, pattern)}, found {value}"
        case _:
            expected = fault["msg"].replace("Input should be", "expected").replace("a valid ", "a ")
            text = f"{expected.replace('a integer', 'an integer')}, found {value}"
    # A rule that spans sections has no key; its message names them.
    return f"{name}: {text}" if name else text


def keys_at(place: Sequence[str | int], schema: type[BaseModel]) -> set[str]:
    """Return the keys that a schema allows at a place in a file."""
    models = {schema}
    for part in place:  # also indices, and the tags of unions, which stay at the same models
        fields = [model.model_fields[part] for model in models if part in model.model_fields]
        models = {model for field in fields for model in models_in(field.annotation)} or models
    return {key for model in models for key in model.model_fields}


def models_in(annotation: Any) -> set[type[BaseModel]]:
    """Return the models in an annotation such as `list[A | B]`."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return {annotation}
    return {model for part in get_args(annotation) for model in models_in(part)}


def suggest(unknown: str, known: Iterable[str]) -> str:
    """Return the end of a message about an unknown name: the most similar known name, or else all of them."""
    near = difflib.get_close_matches(unknown, sorted(known), n=1)
    return f"did you mean {near[0]}?" if near else "known here: " + ", ".join(sorted(known))
