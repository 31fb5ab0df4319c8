"""The command `convs2s candidates`: parallel text -> the file for `convs2s translate --candidates`."""

import argparse
import sys
from pathlib import Path

from convs2s.commands.help import Help, examples


def add(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command's parser."""
    command = commands.add_parser(
        "candidates",
        help="make the file for `translate --candidates`, which speeds up translation",
        description="Split parallel text into a model's vocabulary entries, align them, and write the target "
        "entries that each source entry is linked to. With this file, translation considers only the target "
        "entries that the source sentences need. The model's own training data work best.",
        formatter_class=Help,
        epilog=examples(
            "convs2s candidates --model MODEL --source train.en --target train.de --output candidates.npz",
            "convs2s translate --model MODEL --candidates candidates.npz --input new.en",
        ),
    )
    command.set_defaults(run=run)
    for name, kind, text in (
        ("--model", "DIR", "model folder, trained or imported"),
        ("--source", "FILE", "UTF-8 text, one sentence per line"),
        ("--target", "FILE", "its translation, line by line"),
        ("--output", "FILE", "file to write, such as candidates.npz"),
    ):
        command.add_argument(name, required=True, type=Path, metavar=kind, help=text)


def run(options: argparse.Namespace) -> None:
    """Write the candidates."""
    from convs2s.package.candidates import write_candidates_of_text  # noqa: PLC0415  # compiled loops

    summary = write_candidates_of_text(options.model, options.source, options.target, options.output)
    print(f"{options.output}: {summary}", file=sys.stderr)
