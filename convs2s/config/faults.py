"""Pydantic's errors, one line per key: dotted name, what was found, what was wanted."""

import difflib
import re
from collections.abc import Iterable
from typing import Any, get_args

from pydantic import BaseModel

from convs2s.config.download import Md5RemoteFile, RemoteFile, Source
from convs2s.config.kinds import PATTERNS
from convs2s.config.selection import SelectionParams

LONGEST = 200
"""Characters of a value that a message shows; longer values are shortened."""


def describe(fault: Any, schema: type[BaseModel] | None = None) -> str:
    """Return one line for a pydantic error: dotted name, what was found, what was wanted.

    Args:
        schema: what was validated, if not params.yaml; for the hint about an unknown key.
    """
    # In the location, a union's tag follows the list index; the tag is not a key of the file.
    kinds = {*sources(), "by_sha256", "by_md5"}
    keys = [str(part) for part in fault["loc"]]
    name = (
        ".".join(key for i, key in enumerate(keys) if not (key in kinds and i and keys[i - 1].isdigit()))
        or "params.yaml"
    )
    match fault["type"]:
        case "extra_forbidden":
            known = known_keys(keys, schema)
            return f"{name}: unknown key, found {shown(fault['input'])}; {hint(keys[-1], known)}"
        case "missing":
            return f"{name}: missing; params.yaml gives every value, see experiments/base.yaml"
        case "value_error":
            # A rule that spans sections has no key; its message names them.
            return f"{name}: {fault['ctx']['error']}" if keys else str(fault["ctx"]["error"])
        case "string_pattern_mismatch":
            pattern = fault["ctx"]["pattern"]
            wanted = PATTERNS.get(pattern, f"text that matches {pattern}")
            return f"{name}: found {shown(fault['input'])}, wanted {wanted}"
        case "too_short":
            least = fault["ctx"]["min_length"]
            return f"{name}: found {shown(fault['input'])}, wanted at least {least} item{'s' * (least > 1)}"
        case _:
            message = (
                fault["msg"]
                .replace("Input should be", "wanted")
                .replace("a valid ", "a ")
                .replace("a integer", "an integer")
            )
            return f"{name}: found {shown(fault['input'])}, {message}"


def hint(unknown: str, known: Iterable[str]) -> str:
    """Return the end of a message about an unknown name: the most similar known name, or else all of them."""
    near = difflib.get_close_matches(unknown, sorted(known), n=1)
    return f"did you mean {near[0]}?" if near else "known here: " + ", ".join(sorted(known))


def shown(value: object) -> str:
    """Return a value as shown in a message: without a URL's password or query, or a long value's middle."""
    text = re.sub(r"(://)[^/\s'\"]*@", r"\1...@", repr(value))
    text = re.sub(r"(://[^?\s'\"]*\?)[^\s'\"]+", r"\1...", text)
    return text if len(text) <= LONGEST else f"{text[: LONGEST // 2]} ... {text[-LONGEST // 2 :]}"


def sources() -> dict[str, type[BaseModel]]:
    """Return the source classes of `download`, by kind."""
    union, _ = get_args(Source)
    return {get_args(source.model_fields["kind"].annotation)[0]: source for source in get_args(union)}


def known_keys(location: list[str], schema: type[BaseModel] | None = None) -> set[str]:
    """Return the keys that the schema, by default params.yaml's, allows where `location` ends."""
    if location[-2:-1] == ["selection"]:
        return set(SelectionParams.model_fields)
    if schema is not None:
        return set(schema.model_fields)
    # Importing all sections takes 0.2 s, too long to do it unless there is a fault to report.
    from convs2s.config.params import Params  # noqa: PLC0415

    if len(location) <= 1:
        return set(Params.model_fields)
    section = Params.model_fields.get(location[0])
    annotation = section.annotation if section else None
    if not (isinstance(annotation, type) and issubclass(annotation, BaseModel)):
        return set()
    if len(location) == 2:  # a key of a section
        return set(annotation.model_fields)
    kinds = sources()
    tags = [kinds[key] for key in location if key in kinds]
    last: type[BaseModel] = tags[-1] if tags else annotation
    if "fetch" in location[:-1]:
        last = Md5RemoteFile if "by_md5" in location else RemoteFile
    return set(last.model_fields)
