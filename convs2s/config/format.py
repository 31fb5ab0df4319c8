"""The format of model folders and checkpoints: the first version of convs2s that reads them.

They may grow, as long as whatever is there today stays readable:

- A key of a section of params.yaml is added with `later(value, since=VERSION)`. A model folder leaves it out
  where it has that value, so earlier versions still read the folder; with another value the folder's format
  is VERSION, and they refuse it.
- For anything else that earlier versions refuse or overlook (a key of model.json, facts.json or a
  checkpoint's state; a file; a tensor; another meaning), raise FORMAT to the version to come, and say, where
  it is read, what its absence means. Then keep a state of the new format: tests/golden/README.md.

tests/test_states.py compares the keys with those of the states kept there.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from convs2s.config.faults import models_in
from convs2s.config.model import ModelParams
from convs2s.config.section import VERSION, Section
from convs2s.config.tokenize import TokenizeParams
from convs2s.config.translate import PackagedTranslateParams

FORMAT = "1.0.0"
"""The format of checkpoints, and of model folders in which all later keys have their default."""
BEFORE = "0.1.0"
"""The format of files that do not name one."""


class NewerFormatError(ValueError):
    """A file of a version of convs2s that is newer than this one."""


def newest(formats: Iterable[str]) -> str:
    """Return the newest of some versions."""
    return max(formats, key=numbers_of)


def numbers_of(version: str) -> list[int]:
    """Return a version as numbers, which compare as versions do: 1.10.0 is newer than 1.9.0."""
    return [int(part) for part in version.split(".")]


def format_of(*sections: Section) -> str:
    """Return the first version that reads these sections, written without later keys at their default."""
    formats = [FORMAT]
    for section in sections:
        formats += list_since(type(section), section.model_dump(exclude_defaults=True))
    return newest(formats)


def list_since(schema: type[BaseModel], content: Mapping[str, Any] | None = None) -> Iterator[str]:
    """Yield the version that added each later key of a schema; given content, only of its keys."""
    for key in schema.model_fields if content is None else content:
        field = schema.model_fields[key]
        if isinstance(field.json_schema_extra, dict):
            yield str(field.json_schema_extra["since"])
        value = None if content is None else content[key]
        for model in models_in(field.annotation):
            if content is None or isinstance(value, dict):
                yield from list_since(model, value)


READABLE = newest(
    [FORMAT, *list_since(ModelParams), *list_since(TokenizeParams), *list_since(PackagedTranslateParams)]
)
"""The newest format that this code reads."""


def check_format(form: object, path: Path) -> None:
    """Raise NewerFormatError if a file's format is newer than this code; other faults are for its schema."""
    if not (isinstance(form, str) and re.fullmatch(VERSION, form)):
        return
    if numbers_of(form) > numbers_of(READABLE):
        raise NewerFormatError(
            f"{path} has format {form}; this convs2s reads up to {READABLE}. Install convs2s {form} or later."
        )
