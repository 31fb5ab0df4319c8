"""Values that replace those of a params.yaml: read from NAME=VALUE, applied, and written again."""

import argparse
import functools
import io
import json
import operator
import re
from collections.abc import Mapping
from typing import Any

from ruamel.yaml import YAML, RoundTripRepresenter
from ruamel.yaml.comments import CommentedMap, CommentedSeq

from convs2s.config.faults import suggest
from convs2s.config.load import flatten_values, parse_params, parse_yaml
from convs2s.config.params import Params

Overrides = Mapping[str, Any]
"""Values by dotted name, such as train.dropout or download.train.sources.0.tsv."""
PLAIN = re.compile(r"[\w.,=:/\[\]+-]+")
"""Text that needs no quotes in a shell."""


class Representer(RoundTripRepresenter):
    """Writes null as the presets do; ruamel's own representer writes an empty value."""


Representer.add_representer(
    type(None), lambda self, _: self.represent_scalar("tag:yaml.org,2002:null", "null")
)


def round_trip() -> YAML:
    """Return a reader and writer of YAML that keeps comments, quotes and the form of lists."""
    yaml = YAML()
    yaml.Representer, yaml.width, yaml.preserve_quotes = Representer, 4096, True
    yaml.indent(sequence=4, offset=2)
    return yaml


def dump(content: CommentedMap) -> str:
    """Return the text of a YAML file."""
    stream = io.StringIO()
    round_trip().dump(content, stream)
    return stream.getvalue()


def parse_override(text: str) -> tuple[str, Any]:
    """Parse NAME=VALUE, the value as in params.yaml; raise ArgumentTypeError if that is not possible."""
    name, equals, value = text.partition("=")
    if not equals:
        raise argparse.ArgumentTypeError(f"expected NAME=VALUE, such as train.dropout=0.3, found {text!r}")
    try:
        return name, parse_yaml(value, text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{error}\n(a list is written without spaces: [1,2])") from error


def write_value(value: Any) -> str:
    """Return a value in the form that `parse_override` reads; text is unquoted if it still reads as text."""
    plain = f"[{','.join(map(write_value, value))}]" if isinstance(value, list) else str(value)
    if isinstance(value, str | list) and PLAIN.fullmatch(plain) and parse_override(f"={plain}")[1] == value:
        return plain
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def apply_overrides(text: str, overrides: Overrides) -> tuple[str, Params]:
    """Return the text of a params.yaml with overrides applied and its comments kept, and its parsed values.

    Raises a ValueError if there is no such name, or a value is not valid.
    """
    content = round_trip().load(text)
    for name, value in overrides.items():
        *sections, key = [int(part) if part.isdigit() else part for part in name.split(".")]
        try:
            place = functools.reduce(operator.getitem, sections, content)
            comments = place.ca.items.get(key)
            place[key] = CommentedSeq(value) if isinstance(value, list) else value
        except (LookupError, TypeError, AttributeError) as error:
            hint = suggest(name, flatten_values(content))
            raise ValueError(f"params.yaml has no {name}; {hint}") from error
        if isinstance(value, list):
            place[key].fa.set_flow_style()  # [1, 2] on one line
        if comments and comments[3] is not None:  # of a list over several lines
            place.ca.items[key] = [*comments[:2], comments[2] or next(iter(comments[3]), None), None]
    changed = dump(content) if overrides else text
    return changed, parse_params(changed, "params.yaml")
