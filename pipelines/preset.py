"""Write params.yaml from a preset of experiments/presets: the whole file, checked and commented.

Without NAME, list the presets.
"""

import argparse
import contextlib
import difflib
import functools
import io
import itertools
import json
import operator
import re
import shlex
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

from ruamel.yaml import YAML, RoundTripRepresenter
from ruamel.yaml.comments import CommentedMap, CommentedSeq
from ruamel.yaml.error import YAMLError

from convs2s.base.files import atomic_path
from convs2s.base.messages import reader_is_gone
from convs2s.config.faults import suggest
from convs2s.config.load import flatten_values, parse_params, parse_yaml, read_text
from convs2s.config.params import Params

EXPERIMENTS = Path(__file__).parents[1] / "experiments"
Overrides = Mapping[str, Any]
"""Values by dotted name."""
NO_OVERRIDES: Overrides = MappingProxyType({})
PLAIN = re.compile(r"[\w.,=:/\[\]+-]+")
"""Text that needs no quotes in a shell."""
LONGEST = 60
FREELY = ". Edit it freely.\n"
"""Characters of a value to show."""


class Representer(RoundTripRepresenter):
    """Writes null as the presets do; ruamel's own representer writes an empty value."""


Representer.add_representer(
    type(None), lambda self, _: self.represent_scalar("tag:yaml.org,2002:null", "null")
)


def list_presets(experiments: Path = EXPERIMENTS) -> list[str]:
    """Return the names of all presets."""
    return sorted(path.stem for path in (experiments / "presets").glob("*.yaml"))


def read_preset(name: str, experiments: Path = EXPERIMENTS) -> str:
    """Return the text of a preset's file; raise ValueError with similar names if there is none."""
    if name not in (known := list_presets(experiments)):
        if "=" in name:
            raise ValueError(
                f"experiments/presets: values need a preset: make preset NAME=tatoeba-en-de SET={name!r}"
            )
        near = difflib.get_close_matches(Path(name).stem, known, n=3, cutoff=0.4)
        hint = f"did you mean {' or '.join(near)}?" if near else f"expected one of {', '.join(known)}."
        raise ValueError(f"experiments/presets has no preset {name!r}; {hint}")
    return read_text(experiments / "presets" / f"{name}.yaml")


def read_header(text: str) -> list[str]:
    """Return the comment lines at the beginning of a file."""
    return list(itertools.takewhile(lambda line: line.startswith("#"), text.split("\n")))


def preset_params(name: str, experiments: Path = EXPERIMENTS) -> Params:
    """Return the parameters of a preset; raise ValueError as `render`."""
    return parse_params(render(name, experiments), name)


def render(name: str, experiments: Path = EXPERIMENTS, overrides: Overrides = NO_OVERRIDES) -> str:
    """Return the params.yaml of a preset: base.yaml with the values and comments of the preset's keys.

    Args:
        overrides: values that replace the preset's.

    Raises:
        ValueError: if there is no such preset, it has a key that the base lacks or an invalid value; the
            message names the file and the key. Or as `apply_overrides`.
    """
    origin, text = f"experiments/presets/{name}.yaml", read_preset(name, experiments)
    parse_yaml(text, origin)
    content: Any = round_trip().load(experiments / "base.yaml")
    changes: Any = round_trip().load(text) or CommentedMap()  # none if it is all comments
    if not isinstance(changes, CommentedMap):
        raise ValueError(
            f"{origin}: expected sections such as `train:` with keys below them, found {changes!r}"
        )
    for section, keys in changes.items():
        if isinstance(keys, CommentedMap) and section in content:
            for key in keys:
                replace(content[section], key, keys[key], keys.ca.items.get(key))
        else:
            content[section] = keys
        if section in changes.ca.items:
            content.ca.items[section] = changes.ca.items[section]
    content.ca.comment = None  # the base's header
    lines = [line for line in write(content).split("\n") if line.strip()]
    body = "".join(f"\n{line}\n" if re.match(r"\w", line) else f"{line}\n" for line in lines)
    parse_params(body, f"{origin}, completed from experiments/base.yaml,")
    command = f"# Preset {name}, written by: {preset_command(name, overrides)}{FREELY.rstrip()}"
    complete = "\n".join([command, "#", *read_header(text), body])
    return apply_overrides(complete, overrides)[0] if overrides else complete


def round_trip() -> YAML:
    """Return a reader and writer of YAML that keeps comments, quotes and the form of lists."""
    yaml = YAML()
    yaml.Representer, yaml.width, yaml.preserve_quotes = Representer, 4096, True
    yaml.indent(sequence=4, offset=2)
    return yaml


def replace(content: Any, key: Any, value: Any, comment: Any) -> None:
    """Put a value and its comment, as ruamel represents one, in the place of others."""
    content[key] = value
    content.ca.items.pop(key, None)
    if comment:
        content.ca.items[key] = comment


def write(content: CommentedMap) -> str:
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
        return name, parse_yaml(value, f"{name}={value}")
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{error}\n(a list is written without spaces: [1,2])") from error


def apply_overrides(text: str, overrides: Overrides) -> tuple[str, Params]:
    """Return the text of a params.yaml with overrides applied and its comments kept, and its parsed values.

    Names are dotted, as train.dropout or download.train.0.pairs.

    Raises:
        ValueError: if there is no such name, or a value is not valid.
    """
    content = round_trip().load(text)
    for name, value in overrides.items():
        *sections, last = [int(part) if part.isdigit() else part for part in name.split(".")]
        try:
            place = functools.reduce(operator.getitem, sections, content)
            if not isinstance(place, CommentedMap):  # the schema checks the keys of those
                place[last]
            comment = place.ca.items.get(last)
        except (KeyError, IndexError, TypeError, AttributeError) as error:
            section = str(sections[0])
            hint = suggest(name, flatten_values(content)) if section in content else suggest(section, content)
            raise ValueError(f"invalid overrides: params.yaml has no {name}; {hint}") from error
        if isinstance(place, CommentedMap) and comment and comment[3] is not None:  # of a list over lines
            comment = [*comment[:2], comment[2] or next(iter(comment[3]), None), None]
        replace(place, last, value, comment)
        if isinstance(value, list):
            place[last] = CommentedSeq(value)
            place[last].fa.set_flow_style()  # [1, 2] on one line
    changed = write(content)
    try:
        return changed, parse_params(changed, "params.yaml")
    except ValueError as error:
        raise ValueError(f"invalid overrides: {error}") from error


def preset_command(name: str, overrides: Overrides) -> str:
    """Return the shell command that writes params.yaml from a preset with overrides."""
    words = [f"{key}={write_value(value)}" for key, value in overrides.items()]
    text = " ".join(word if PLAIN.fullmatch(word) else shlex.quote(word) for word in words)
    quoted = f'SET="{text}"'
    if set(text) & set('"\\$`'):
        quoted = shlex.quote(f"SET={text}".replace("$", "$$"))  # make expands $, too
    return " ".join(["make preset", f"NAME={name}", *([quoted] if words else [])])


def parse_command(command: str) -> dict[str, Any]:
    """Return the overrides in a command of `preset_command`; raise ArgumentTypeError if it is not one."""
    variables = dict(word.split("=", 1) for word in shlex.split(command) if "=" in word)
    return dict(map(parse_override, shlex.split(variables.get("SET", "").replace("$$", "$"))))


def write_value(value: Any) -> str:
    """Return a value in the form that `parse_override` reads; text is unquoted if it still reads as text."""
    plain = f"[{','.join(map(write_value, value))}]" if isinstance(value, list) else str(value)
    if isinstance(value, str | list) and PLAIN.fullmatch(plain) and parse_override(f"={plain}")[1] == value:
        return plain
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def list_differences(old: str, new: str) -> list[str]:
    """Return a line for each key of params.yaml whose value differs: dotted name, old -> new."""

    def read(text: str) -> dict[str, str]:
        with contextlib.suppress(ValueError):  # a file that is not YAML is to be replaced, too
            if isinstance(content := parse_yaml(text, "params.yaml"), Mapping):
                return {key: json.dumps(value, default=str) for key, value in flatten_values(content).items()}
        return {}

    def shorten(line: str) -> str:
        return f"{line[:LONGEST]}..." if len(line) > LONGEST else line

    before, after = read(old), read(new)
    return [
        f"{key}: {shorten(before.get(key, '(none)'))} -> {shorten(after.get(key, '(none)'))}"
        for key in {**after, **before}
        if before.get(key) != after.get(key)
    ]


def written_preset(text: str) -> tuple[str, str] | None:
    """Return name and text of the preset that a params.yaml was written from; None if its header has none."""
    found = re.match(r"# Preset ([\w-]+), written by: (.+)" + re.escape(FREELY), text)
    try:
        return (found[1], render(found[1], overrides=parse_command(found[2]))) if found else None
    except (ValueError, argparse.ArgumentTypeError, YAMLError):  # no longer a preset
        return None


def is_committed(path: Path, text: str) -> bool:
    """Return whether the last git commit has this text of a file."""
    with contextlib.suppress(OSError):  # no git
        command = ["git", "show", f"HEAD:./{path.name}"]
        shown = subprocess.run(command, cwd=path.parent, capture_output=True, check=False)
        return shown.returncode == 0 and shown.stdout.decode("utf-8", errors="replace") == text
    return False


def write_preset(name: str, overrides: Overrides, out: Path, force: bool) -> None:
    """Write a preset's file, with any overrides; first print which values of the old file were edited.

    Raises:
        ValueError: if there is no such preset or it is invalid; or, unless `force`, if edits of the file
            would be lost.
    """
    text = render(name, overrides=overrides)
    old = out.read_text(encoding="utf-8", errors="replace") if out.is_file() else ""
    origin, preset = written_preset(old) or (name, text)
    if old and old != preset:
        changes = list_differences(old, preset)
        print(f"{out}: {len(changes)} value(s) differ from preset {origin}")
        print("".join(f"  {line}\n" for line in changes), end="")
        if not force and not is_committed(out, old):
            raise ValueError(
                f"{out} has edits that are not in git, so it was not overwritten. Commit it (git add {out}; "
                f"git commit), write another file (python -m pipelines.preset {name} --out FILE), or "
                f"overwrite the edits ({preset_command(name, overrides)} FORCE=1, or --force)."
            )
    elif old != text and (given := re.search("written by: (.* SET=.*)" + re.escape(FREELY), old)):
        print(f"{out} had other values of SET. To have these back: {given[1]}")
    with atomic_path(out) as temporary:
        temporary.write_text(text, encoding="utf-8", newline="\n")
    print(f"Wrote {out} from preset {name}.")


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the preset's file, or list the presets; return the exit status: 0, or 1 after an error."""
    form = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser("python -m pipelines.preset", description=__doc__, formatter_class=form)
    add = parser.add_argument
    add("name", metavar="NAME", nargs="?", help="preset to write, such as multi30k-en-de")
    change = "value to use instead of the preset's, such as seeds=[1,2]"
    add("overrides", metavar="KEY=VALUE", nargs="*", type=parse_override, help=change)
    add("--out", type=Path, default=Path("params.yaml"), metavar="FILE", help="file to write (%(default)s)")
    add("--force", action="store_true", help="overwrite edits of FILE that are not in git")
    options = parser.parse_intermixed_args(arguments)  # options may also come before KEY=VALUE
    try:
        if options.name is None:
            for name in list_presets():
                print(f"{name:20} {read_header(read_preset(name))[0].removeprefix('# ')}")
            print("\nmake preset NAME=... writes params.yaml from one of them.")
        else:
            write_preset(options.name, dict(options.overrides), options.out, options.force)
        sys.stdout.flush()
    except BrokenPipeError:  # `| head`
        return reader_is_gone()
    except (ValueError, OSError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
