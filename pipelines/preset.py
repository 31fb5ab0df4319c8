"""Write params.yaml from a preset of experiments/presets: the whole file, checked and commented.

Without NAME, list the presets.
"""

import argparse
import contextlib
import re
import shlex
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

from ruamel.yaml.comments import CommentedMap

from convs2s.base.files import atomic_path
from convs2s.config.faults import suggest
from convs2s.config.load import parse_params, parse_yaml, read_text
from convs2s.config.params import Params
from pipelines.overrides import (
    PLAIN,
    Overrides,
    apply_overrides,
    dump,
    parse_override,
    round_trip,
    write_value,
)

EXPERIMENTS = Path(__file__).parents[1] / "experiments"
PARAMS = Path("params.yaml")


def list_presets() -> list[str]:
    """Return the names of all presets."""
    return sorted(path.stem for path in (EXPERIMENTS / "presets").glob("*.yaml"))


def read_preset(name: str) -> str:
    """Return the text of a preset's file; raise ValueError with a similar name if there is none."""
    if name not in (names := list_presets()):
        raise ValueError(f"experiments/presets has no preset {name!r}; {suggest(name, names)}")
    return read_text(EXPERIMENTS / "presets" / f"{name}.yaml")


def preset_params(name: str) -> Params:
    """Return the parameters of a preset; raise ValueError as `render`."""
    return parse_params(render(name), name)


def render(name: str, overrides: Overrides = MappingProxyType({})) -> str:
    """Return the params.yaml of a preset: base.yaml with the values and comments of the preset's keys.

    Raises a ValueError that names the file and the key if there is no such preset, it has a key that the base
    lacks or an invalid value; or as `apply_overrides`.
    """
    origin, text = f"experiments/presets/{name}.yaml", read_preset(name)
    parse_yaml(text, origin)
    content: Any = round_trip().load(EXPERIMENTS / "base.yaml")
    changes: Any = round_trip().load(text) or CommentedMap()  # none if it is all comments
    for section, keys in changes.items():
        if isinstance(keys, CommentedMap) and section in content:
            for key, value in keys.items():
                content[section][key] = value
                content[section].ca.items.pop(key, None)
            content[section].ca.items.update(keys.ca.items)
        else:
            content[section] = keys
    content.ca.items.update(changes.ca.items)
    content.ca.comment = None  # the base's header
    lines = [line for line in dump(content).split("\n") if line.strip()]
    body = "".join(f"\n{line}\n" if re.match(r"\w", line) else f"{line}\n" for line in lines)
    parse_params(body, f"{origin}, completed from experiments/base.yaml,")
    header = text[: len(text) - len(re.sub(r"\A(#.*\n)*", "", text))]
    command = preset_command(name, overrides)
    whole = f"# Preset {name}, written by: {command}. Edit it freely.\n#\n{header}{body}"
    return apply_overrides(whole, overrides)[0] if overrides else whole


def preset_command(name: str, overrides: Overrides) -> str:
    """Return the shell command that writes params.yaml from a preset with overrides."""
    words = [f"{key}={write_value(value)}" for key, value in overrides.items()]
    text = " ".join(word if PLAIN.fullmatch(word) else shlex.quote(word) for word in words)
    return f"make preset NAME={name}" + (f" SET={shlex.quote(text.replace('$', '$$'))}" if words else "")


def is_unedited(path: Path) -> bool:
    """Return whether a params.yaml is that of a preset as it is, or that of the last git commit."""
    content = path.read_bytes()
    name = re.match(rb"# Preset ([\w-]+), ", content)
    if name and name[1].decode() in list_presets() and content == render(name[1].decode()).encode():
        return True
    with contextlib.suppress(OSError):  # no git
        shown = subprocess.run(["git", "show", f"HEAD:./{path}"], capture_output=True, check=False)
        return shown.returncode == 0 and shown.stdout == content
    return False


def write_preset(name: str, overrides: Overrides, force: bool) -> None:
    """Write params.yaml; raise ValueError as `render`, or, unless `force`, if edits would be lost."""
    text = render(name, overrides)
    if PARAMS.is_file() and not force and not is_unedited(PARAMS):
        raise ValueError(
            f"{PARAMS} has edits that are not in git, so it was not overwritten. Commit them, or lose them: "
            f"{preset_command(name, overrides)} FORCE=1"
        )
    with atomic_path(PARAMS) as temporary:
        temporary.write_text(text, encoding="utf-8", newline="\n")
    print(f"Wrote {PARAMS} from preset {name}.")


def main(arguments: Sequence[str] | None = None) -> int:
    """Write params.yaml, or list the presets; return the exit status: 0, or 1 after an error."""
    parser = argparse.ArgumentParser("python -m pipelines.preset", description=__doc__)
    add = parser.add_argument
    add("name", metavar="NAME", nargs="?", help="preset to write, such as multi30k-en-de")
    change = "value to use instead of the preset's, such as seeds=[1,2]"
    add("overrides", metavar="KEY=VALUE", nargs="*", type=parse_override, help=change)
    add("--force", action="store_true", help="overwrite values that are not in git")
    options = parser.parse_intermixed_args(arguments)  # options may also come before KEY=VALUE
    try:
        if options.name:
            write_preset(options.name, dict(options.overrides), options.force)
        else:
            for name in list_presets():
                title = read_preset(name).partition("\n")[0].removeprefix("# ")
                print(f"{name:20} {title}")
            print("\nmake preset NAME=... writes params.yaml from one of them.")
    except (ValueError, OSError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
