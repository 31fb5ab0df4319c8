"""`convs2s upload`: a model folder -> a repository on the Hugging Face Hub."""

import argparse
import re
from pathlib import Path
from typing import Any

from convs2s.commands.help import Help, examples


def add(commands: Any) -> None:
    """Add the command's parser.

    Args:
        commands: what argparse's `add_subparsers` returned.
    """
    command = commands.add_parser(
        "upload",
        help="upload a model folder to the Hugging Face Hub",
        description="Upload a model folder to the Hugging Face Hub; --model hf:OWNER/NAME then loads it from "
        "there. Log in first: hf auth login. Needs: pip install 'convs2s[hub]'.",
        formatter_class=Help,
        epilog=examples("convs2s upload OWNER/NAME --model data/models/1"),
    )
    command.set_defaults(run=run)
    add = command.add_argument
    add("repository", metavar="OWNER/NAME", help="repository; created if needed")
    add("--model", required=True, type=Path, metavar="DIR", help="model folder")
    add(
        "--commit",
        type=commit,
        metavar="HASH",
        help="commit of the code that made the model, for the model card (default: left out)",
    )
    add("--private", action="store_true", help="make a new repository private")


def commit(text: str) -> str:
    """Check the hash of a commit."""
    if not re.fullmatch(r"[0-9a-f]{7,64}", text):
        raise argparse.ArgumentTypeError(f"found {text!r}, wanted a hash as git rev-parse HEAD prints it")
    return text


def run(options: argparse.Namespace) -> None:
    """Upload, and print the address.

    Raises:
        OSError, ValueError: as `upload` of convs2s.package.
    """
    from convs2s.package.hub import upload  # noqa: PLC0415  # takes a second; --help must not

    print(upload(options.model, options.repository, options.commit, options.private))
