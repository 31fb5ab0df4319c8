"""Write params.yaml from a preset of experiments/presets: the whole file, checked and commented.

Without NAME, list the presets.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from convs2s.text.corpus.files import atomic_path
from pipelines.preset.changes import differences, has_unsaved_edits
from pipelines.preset.overrides import Overrides, override, preset_command
from pipelines.preset.render import preset_names, preset_title, render


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the preset's file, or list the presets; return the exit status: 0, or 1 after an error."""
    options = parse(arguments)
    try:
        if options.name is None:
            list_presets()
        else:
            write(options.name, dict(options.overrides), options.out, options.force)
    except (ValueError, OSError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Return the options of the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m pipelines.preset",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("name", metavar="NAME", nargs="?", help="preset to write, such as multi30k-en-de")
    change = "value to use instead of the preset's, such as train.seeds=[1,2]"
    add("overrides", metavar="KEY=VALUE", nargs="*", type=override, help=change)
    add("--out", type=Path, default=Path("params.yaml"), metavar="FILE", help="file to write (%(default)s)")
    add("--force", action="store_true", help="overwrite edits of FILE that are not in git")
    return parser.parse_intermixed_args(arguments)  # options may also come before KEY=VALUE


def list_presets() -> None:
    """Print the name and title of each preset."""
    names = preset_names()
    width = max(map(len, names), default=0)
    for name in names:
        print(f"{name:{width}}  {preset_title(name)}")
    print("\nmake preset NAME=... writes params.yaml from one of them.")


def write(name: str, overrides: Overrides, out: Path, force: bool) -> None:
    """Write a preset's file, with any overrides, and print which values change.

    Raises:
        ValueError: if there is no such preset or it is invalid; or, unless `force`, if edits of the file
            would be lost.
    """
    text = render(name, overrides=overrides)
    if out.is_file():
        changes = differences(out.read_text(encoding="utf-8", errors="replace"), text)
        print(f"{out}: {len(changes)} value(s) differ from preset {name}")
        print("".join(f"  {line}\n" for line in changes), end="")
        if not force and has_unsaved_edits(out):
            raise ValueError(
                f"{out} has edits that are not in git, so it was not overwritten. Commit it (git add {out}; "
                f"git commit), write another file (python -m pipelines.preset {name} --out FILE), or "
                f"overwrite the edits ({preset_command(name, overrides)} FORCE=1, or --force)."
            )
    with atomic_path(out) as temporary:
        temporary.write_text(text, encoding="utf-8", newline="\n")
    print(f"Wrote {out} from preset {name}.")


if __name__ == "__main__":
    sys.exit(main())
