"""Check values against a schema; every fault gets a line: dotted name, what was expected, what was found."""

import difflib
import json
import re
import reprlib
from collections.abc import Iterable, Sequence
from typing import Any, TypeVar, get_args

from pydantic import BaseModel, ValidationError

from convs2s.base.messages import inflect
from convs2s.config.download import PATTERNS

UNKNOWN_KEY = ("extra_forbidden", "unexpected_keyword_argument")
"""What pydantic calls a key that a schema does not have."""
WORDS = {"a integer": "an integer", "a boolean": "true or false", "a tuple": "a list"}
"""Pydantic's words, and those of YAML and JSON."""
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
    lines: list[str] = []
    texts: dict[str, list[str]] = {}
    for fault in error.errors():
        text = describe_fault(fault, schema)
        if name := name_key(fault):
            texts.setdefault(name, []).append(text)
        else:  # a rule that spans sections, whose message names them
            lines.append(f"  {text}")
    return "\n".join(
        [*(f"  {name}: {join_alternatives(several)}" for name, several in texts.items()), *lines]
    )


def name_key(fault: Any) -> str:
    """Return the dotted name of the key that a pydantic error is about, without the types it may have."""
    is_unknown = fault["type"] in UNKNOWN_KEY
    return ".".join(str(part) for part in fault["loc"] if is_unknown or re.fullmatch(r"\w+", str(part)))


def join_alternatives(texts: Sequence[str]) -> str:
    """Return the faults of a key as one: there are several if a value fits no alternative of its type."""
    if len(texts) == 1:
        return texts[0]
    expected = [text.partition(", found ")[0].removeprefix("expected ") for text in texts]
    return f"expected {' or '.join(expected)}, found {texts[0].partition(', found ')[2]}"


def describe_fault(fault: Any, schema: type[BaseModel] | None) -> str:
    """Return what a pydantic error expected and found."""
    value = spell_value(fault["input"])
    match fault["type"]:
        case unknown if unknown in UNKNOWN_KEY:
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
        case "too_short" | "string_too_short" | "too_long":
            text = f"expected {describe_length(fault)}, found {value}"
        case _:
            expected = fault["msg"].replace("Input should be", "expected").replace("a valid ", "a ")
            for theirs, ours in WORDS.items():
                expected = expected.replace(theirs, ours)
            text = f"{expected}, found {value}"
    return text


def describe_length(fault: Any) -> str:
    """Return how many items a list should have had, or that a text should not have been empty."""
    if fault["type"] == "string_too_short":
        return "a text"
    if fault["type"] == "too_long":
        return f"at most {inflect(fault['ctx']['max_length'], 'item')}"
    return f"a list with at least {inflect(fault['ctx']['min_length'], 'item')}"


def spell_value(value: object) -> str:
    """Return a value, shortened, as YAML and JSON spell it."""
    return json.dumps(value) if value is None or isinstance(value, bool) else reprlib.repr(value)


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
