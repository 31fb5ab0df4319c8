"""Write params.yaml from a preset of experiments/presets: the whole file, checked and commented.

Without NAME, list the presets.
"""

from pipelines import packages  # noqa: F401  # before what may be missing

# isort: split

import argparse
import contextlib
import io
import itertools
import re
import reprlib
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML, RoundTripRepresenter, ScalarNode
from ruamel.yaml.comments import CommentedMap, CommentedSeq

from convs2s.base.files import write_lines
from convs2s.config.faults import suggest
from convs2s.config.load import flatten_values, parse_params, parse_yaml, read_text
from convs2s.config.params import Params
from pipelines.own_texts import make_own_folder
from pipelines.stages._declared import PARAMS

EXPERIMENTS = Path(__file__).parents[1] / "experiments"
BEFORE_FIRST_ITEM = 3
"""Index, in ruamel's list of a key's comments, of those between the key and the first item of its value."""


class NullRepresenter(RoundTripRepresenter):
    """Writes `null`, as the presets do, where ruamel's own class, which DVC uses as well, writes nothing."""

    def represent_none(self, _: None) -> ScalarNode:
        """Return the node of a null."""
        return self.represent_scalar("tag:yaml.org,2002:null", "null")


NullRepresenter.add_representer(type(None), NullRepresenter.represent_none)


def round_trip() -> YAML:
    """Return a reader and writer of YAML that keeps comments, quotes and the form of lists."""
    yaml = YAML()
    yaml.width = 4096  # no line is wrapped
    yaml.preserve_quotes = True
    yaml.indent(sequence=4, offset=2)
    yaml.Representer = NullRepresenter
    return yaml


def dump(content: CommentedMap) -> str:
    """Return the text of a YAML file."""
    stream = io.StringIO()
    round_trip().dump(content, stream)
    return stream.getvalue()


@contextlib.contextmanager
def refuse_nesting(origin: str) -> Iterator[None]:
    """Report YAML that the reader and writer cannot handle, as lists are within lists within lists."""
    try:
        yield
    except RecursionError:
        raise ValueError(f"{origin} is nested too deeply. Expected sections with values and lists.") from None


def find_presets() -> dict[str, Path]:
    """Return the files of all presets by name."""
    return dict(sorted((path.stem, path) for path in (EXPERIMENTS / "presets").glob("*.yaml")))


def preset_params(name: str) -> Params:
    """Return the parameters of a preset."""
    return parse_params(render_preset(name), name)


def render_preset(name: str) -> str:
    """Return the params.yaml of a preset: base.yaml with the values and comments of the preset's keys."""
    paths = find_presets()
    if name not in paths:
        raise ValueError(f"experiments/presets has no preset {name!r}; {suggest(name, paths)}")
    origin = f"experiments/presets/{name}.yaml"
    text = read_text(paths[name])
    sections = parse_yaml(text, origin)
    if sections and not isinstance(sections, dict):
        raise ValueError(f"{origin}: expected sections of params.yaml, found {reprlib.repr(sections)}")
    content: Any = round_trip().load(EXPERIMENTS / "base.yaml")
    with refuse_nesting(origin):
        changes: Any = round_trip().load(text) or CommentedMap()  # none if it is all comments
    change_values(content, changes)
    content.ca.comment = None  # the base's header
    with refuse_nesting(origin):
        lines = [line for line in dump(content).split("\n") if line.strip()]
    body = ""
    for line in lines:
        if re.match(r"\w", line):  # a section, or a key beside the sections, such as seeds
            body += "\n"
        body += f"{line}\n"
    parse_params(body, f"{origin}, completed from experiments/base.yaml,")
    comments = itertools.takewhile(lambda line: line.startswith("#"), text.split("\n"))
    header = "".join(f"{comment}\n" for comment in comments)
    return f"# Preset {name}. Edit it freely.\n#\n{header}{body}"


def change_values(content: CommentedMap, changes: CommentedMap) -> None:
    """Set a preset's values in `content`, in place; their comments replace those that are there."""
    for section, keys in changes.items():
        if isinstance(keys, CommentedMap) and isinstance(content.get(section), CommentedMap):
            for key, value in keys.items():
                content[section][key] = value
                content[section].ca.items.pop(key, None)
            content[section].ca.items.update(keys.ca.items)
        else:
            content[section] = keys
    content.ca.items.update(changes.ca.items)


def parse_override(text: str) -> tuple[str, Any]:
    """Parse NAME=VALUE, the value as in params.yaml; raise a ValueError if it is not that."""
    name, equals, value = text.partition("=")
    if not equals:
        raise ValueError(f"expected NAME=VALUE, such as train.dropout=0.3, found {text!r}")
    return name, parse_yaml(value, f"{text} (a list is written without spaces: [1,2])")


def apply_overrides(text: str, overrides: Mapping[str, Any]) -> tuple[str, Params]:
    """Return a params.yaml with other values, given by dotted names, and its comments; and all its values."""
    with refuse_nesting("params.yaml"):
        content = round_trip().load(text)
    for name, value in overrides.items():
        *sections, key = [int(part) if part.isdecimal() else part for part in name.split(".")]
        try:
            place = content.mlget(sections, list_ok=True) if sections else content
            new = CommentedSeq(value) if isinstance(value, list) else value
            if isinstance(place, CommentedMap) and place and key not in place:
                # A later key that an older file lacks. It comes before the last one, because the lines that
                # follow that, blank or with comments, belong to the next section.
                place.insert(len(place) - 1, key, new)
            else:
                place[key] = new
        except (LookupError, TypeError, AttributeError) as error:
            hint = suggest(name, flatten_values(content))
            raise ValueError(f"params.yaml has no {name}; {hint}") from error
        if isinstance(value, list):
            write_on_one_line(place, key)
    with refuse_nesting("params.yaml"):
        changed = dump(content) if overrides else text
    return changed, parse_params(changed, "params.yaml")


def write_on_one_line(section: CommentedMap | CommentedSeq, key: str | int) -> None:
    """Have a new list written as [1, 2], even where the former one had a line for each item."""
    section[key].fa.set_flow_style()
    if comments := section.ca.items.get(key):
        comments[BEFORE_FIRST_ITEM] = None


def is_unedited(path: Path) -> bool:
    """Return whether a params.yaml is that of a preset as it is, or that of the last git commit."""
    content = path.read_bytes()
    name = re.match(rb"# Preset ([\w-]+)\. ", content)
    if name and name[1].decode() in find_presets() and content == render_preset(name[1].decode()).encode():
        return True
    command = ["git", "show", f"HEAD:./{path}"]
    committed = subprocess.run(command, capture_output=True, check=False).stdout
    return content == committed


def write_preset(name: str, overrides: Mapping[str, Any], force: bool) -> None:
    """Write params.yaml, unless edits would be lost without `force`."""
    text, params = apply_overrides(render_preset(name), overrides)
    if PARAMS.is_file() and not force and not is_unedited(PARAMS):
        raise ValueError(
            f"{PARAMS} has edits that are not in git, so it was not overwritten. Commit them, or add "
            "FORCE=1 (for python -m pipelines.preset: --force) to lose them."
        )
    write_lines(PARAMS, text.removesuffix("\n").split("\n"))
    make_own_folder(Path(), params.download.folder)
    print(f"Wrote {PARAMS} from preset {name}.")


def main(arguments: Sequence[str] | None = None) -> None:
    """Write params.yaml, or list the presets; exit with status 1 after an error."""
    parser = argparse.ArgumentParser("python -m pipelines.preset", description=__doc__)
    parser.add_argument("name", metavar="NAME", nargs="?", help="such as multi30k-en-de")
    change = "value to use instead of the preset's, such as seeds=[1,2]"
    parser.add_argument("overrides", metavar="KEY=VALUE", nargs="*", help=change)
    parser.add_argument("--force", action="store_true", help="overwrite values that are not in git")
    options = parser.parse_intermixed_args(arguments)  # options may also come before KEY=VALUE
    try:
        if options.name:
            write_preset(options.name, dict(map(parse_override, options.overrides)), options.force)
        else:
            for name, path in find_presets().items():
                title = read_text(path).partition("\n")[0].removeprefix("# ")
                print(f"{name:20} {title}")
            print("\nmake preset NAME=... writes params.yaml from one of them.")
    except (ValueError, OSError) as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
