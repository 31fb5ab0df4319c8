"""Other values than a preset's or those of a params.yaml: NAME=VALUE, as in train.seeds=[1,2]."""

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
"""What needs no quotes in a shell."""


class Representer(RoundTripRepresenter):
    """Writes null as the presets do; ruamel's own writes nothing."""


Representer.add_representer(
    type(None), lambda self, _: self.represent_scalar("tag:yaml.org,2002:null", "null")
)


def override(text: str) -> tuple[str, Any]:
    """Read NAME=VALUE, the value as in params.yaml; raise an ArgumentTypeError if it has another form."""
    name, equals, value = text.partition("=")
    if not equals:
        raise argparse.ArgumentTypeError(f"found {text!r}, wanted NAME=VALUE, for example train.dropout=0.3")
    return name, YAML(typ="safe", pure=True).load(value)


def overridden(text: str, overrides: Overrides) -> tuple[str, Params]:
    """Return the text of a params.yaml with other values and the same comments, and what it says.

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
                f"overrides: params.yaml has no {name} (found nothing under {error}). Wanted a dotted name "
                "that it has, for example train.dropout."
            ) from error
    yaml.dump(content, stream)
    try:
        return stream.getvalue(), parse_params(stream.getvalue(), "params.yaml")
    except ValueError as error:
        raise ValueError(f"overrides do not fit: {error}") from error


def on_one_line(value: Any) -> Any:
    """Return a value so that ruamel writes a list as [1, 2]."""
    if isinstance(value, list):
        value = CommentedSeq(value)
        value.fa.set_flow_style()
    return value


def keep_comment(place: Any, key: Any) -> None:
    """Keep the comment before a list of several lines behind what replaces it.

    Left where it is, ruamel writes it before the value, and then no line break after the next section's name.
    """
    comment = place.ca.items.get(key)
    if isinstance(place, CommentedMap) and comment and comment[3] is not None:
        comment[2:] = [comment[2] or next(iter(comment[3]), None), None]


def dotted(sections: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of params.yaml by dotted name; what a key holds is one value."""
    result: dict[str, Any] = {}
    for section, keys in sections.items():
        named = {f"{section}.{key}": value for key, value in keys.items()} if isinstance(keys, dict) else {}
        result |= named or {str(section): keys}
    return result


def preset_command(name: str, overrides: Overrides) -> str:
    """Return the shell command that writes params.yaml from a preset with other values."""
    words = [f"{key}={written(value)}" for key, value in overrides.items()]
    text = " ".join(word if PLAIN.fullmatch(word) else shlex.quote(word) for word in words)
    quoted = 'SET="{}"'.format(re.sub(r'(["\\])', r"\\\1", text))
    if set("$`") & set(text):  # make, too, has a meaning for $
        quoted = shlex.quote(f"SET={text}".replace("$", "$$"))
    return " ".join(["make preset", f"NAME={name}", *([quoted] if words else [])])


def overrides_of(command: str) -> dict[str, Any]:
    """Return the values in a command of `preset_command`; raise an ArgumentTypeError if it is none."""
    variables = dict(word.split("=", 1) for word in shlex.split(command) if "=" in word)
    return dict(map(override, shlex.split(variables.get("SET", "").replace("$$", "$"))))


def written(value: Any) -> str:
    """Return a value so that `override` reads it; text without quotes where that is read as text."""
    plain = f"[{','.join(map(written, value))}]" if isinstance(value, list) else str(value)
    if isinstance(value, str | list) and PLAIN.fullmatch(plain) and override(f"={plain}")[1] == value:
        return plain
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
