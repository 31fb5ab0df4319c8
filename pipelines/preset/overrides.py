"""Overrides of values in a preset or a params.yaml: NAME=VALUE, as in train.seeds=[1,2]."""

import argparse
import functools
import io
import json
import operator
import re
import shlex
from collections.abc import Mapping
from typing import Any

from ruamel.yaml import YAML, RoundTripRepresenter
from ruamel.yaml.comments import CommentedMap, CommentedSeq

from convs2s.config.load import parse_params
from convs2s.config.params import Params

Overrides = Mapping[str, Any]
"""Values by dotted name."""
PLAIN = re.compile(r"[\w.,=:/\[\]+-]+")
"""Text that needs no quotes in a shell."""


class Representer(RoundTripRepresenter):
    """Writes null as the presets do; ruamel's own representer writes an empty value."""


Representer.add_representer(
    type(None), lambda self, _: self.represent_scalar("tag:yaml.org,2002:null", "null")
)


def override(text: str) -> tuple[str, Any]:
    """Parse NAME=VALUE, the value as in params.yaml; raise ArgumentTypeError if there is no `=`."""
    name, equals, value = text.partition("=")
    if not equals:
        raise argparse.ArgumentTypeError(f"found {text!r}, wanted NAME=VALUE, for example train.dropout=0.3")
    return name, YAML(typ="safe", pure=True).load(value)


def overridden(text: str, overrides: Overrides) -> tuple[str, Params]:
    """Return the text of a params.yaml with overrides applied and its comments kept, and its parsed values.

    Names are dotted, as train.dropout or download.train.0.pairs.

    Raises:
        ValueError: if there is no such name, or a value is not valid.
    """
    yaml, stream = YAML(), io.StringIO()
    yaml.Representer, yaml.width, yaml.preserve_quotes = Representer, 4096, True
    yaml.indent(sequence=4, offset=2)
    content = yaml.load(text)
    for name, value in overrides.items():
        *sections, last = [int(part) if part.isdigit() else part for part in name.split(".")]
        try:
            place = functools.reduce(operator.getitem, sections, content)
            place[last]  # a new key would be a typo
            place[last] = on_one_line(value)
            keep_comment(place, last)
        except (KeyError, IndexError, TypeError) as error:
            raise ValueError(
                f"overrides: params.yaml has no {name} (found nothing under {error}). Wanted an existing "
                "dotted name, for example train.dropout."
            ) from error
    yaml.dump(content, stream)
    try:
        return stream.getvalue(), parse_params(stream.getvalue(), "params.yaml")
    except ValueError as error:
        raise ValueError(f"invalid overrides: {error}") from error


def on_one_line(value: Any) -> Any:
    """Return a value in a form that makes ruamel write a list as [1, 2]."""
    if isinstance(value, list):
        value = CommentedSeq(value)
        value.fa.set_flow_style()
    return value


def keep_comment(place: Any, key: Any) -> None:
    """Move the comment above a multi-line list behind the value that replaces the list.

    Otherwise ruamel writes it before the value, and omits the line break after the next section's name.
    """
    comment = place.ca.items.get(key)
    if isinstance(place, CommentedMap) and comment and comment[3] is not None:
        comment[2:] = [comment[2] or next(iter(comment[3]), None), None]


def preset_command(name: str, overrides: Overrides) -> str:
    """Return the shell command that writes params.yaml from a preset with overrides."""
    words = [f"{key}={written(value)}" for key, value in overrides.items()]
    text = " ".join(word if PLAIN.fullmatch(word) else shlex.quote(word) for word in words)
    quoted = 'SET="{}"'.format(re.sub(r'(["\\])', r"\\\1", text))
    if set("$`") & set(text):  # make expands $, too
        quoted = shlex.quote(f"SET={text}".replace("$", "$$"))
    return " ".join(["make preset", f"NAME={name}", *([quoted] if words else [])])


def overrides_of(command: str) -> dict[str, Any]:
    """Return the overrides in a command of `preset_command`; raise ArgumentTypeError if it is not one."""
    variables = dict(word.split("=", 1) for word in shlex.split(command) if "=" in word)
    return dict(map(override, shlex.split(variables.get("SET", "").replace("$$", "$"))))


def written(value: Any) -> str:
    """Return a value in the form that `override` reads; text is unquoted if it still reads as text."""
    plain = f"[{','.join(map(written, value))}]" if isinstance(value, list) else str(value)
    if isinstance(value, str | list) and PLAIN.fullmatch(plain) and override(f"={plain}")[1] == value:
        return plain
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
