"""What the commands share: the format of help, common options, and loading."""

import argparse
import gc
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

MOST_LINES = 10**6
MOST_CHARACTERS = 10**9
"""The largest values of options: lines, and characters."""


class Help(argparse.ArgumentDefaultsHelpFormatter):
    """Shows defaults that are values, and keeps the line breaks of examples.

    If an option's default is None, its help text says what happens without the option.
    """

    def _get_help_string(self, action: argparse.Action) -> str | None:
        if action.default is None or isinstance(action.default, bool):
            return action.help
        return super()._get_help_string(action)

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        if text.startswith("example"):
            return text
        return super()._fill_text(text, width, indent)


def add_command(
    commands: Any, name: str, run: Callable[[argparse.Namespace], None], summary: str, text: str, *lines: str
) -> argparse.ArgumentParser:
    """Add a command to what argparse's `add_subparsers` returned; return its parser.

    Args:
        run: does the command's work, and its slow imports.
        summary: one line for the list of commands.
        text: the first paragraph of the command's own help.
        lines: examples, as typed.
    """
    examples = "\n  ".join(["examples:" if len(lines) > 1 else "example:", *lines])
    command: argparse.ArgumentParser = commands.add_parser(
        name, help=summary, description=text, formatter_class=Help, epilog=examples
    )
    command.set_defaults(run=run)
    return command


@dataclass(frozen=True)
class Option:
    """An option of a command."""

    flag: str
    settings: Mapping[str, Any]
    """What else argparse's `add_argument` needs to know."""
    help: str
    changes_folder: bool = False
    """Whether a value given replaces that of the model folder's setting with the same name."""
    is_for_one_sentence: bool = False
    """Whether its input or output belongs to one sentence, so that lines cannot be split."""

    @property
    def name(self) -> str:
        """The name of its value among parsed options."""
        return self.flag.removeprefix("--").replace("-", "_")


COUNT = {"type": int, "metavar": "N"}
NUMBER = {"type": float, "metavar": "X"}
FILE = {"type": Path, "metavar": "FILE"}
MODELS = {"required": True, "action": "extend", "nargs": "+", "type": Path, "metavar": "DIR"}
SWITCH = {"action": "store_true"}
YES_OR_NO = {"action": argparse.BooleanOptionalAction}
"""Settings of options."""
KEEP_LITERALS = Option(
    "--keep-literals",
    YES_OR_NO,
    "keep addresses, placeholders and other parts that are not language as they are "
    "(default: yes, unless the model's text is already tokenized)",
)
CAPITALS = Option(
    "--capitals",
    YES_OR_NO,
    "lower what is in capitals or title case for the model, and raise the translation of what was in "
    "capitals (default: yes, unless the model's text is already tokenized)",
    changes_folder=True,
)
PROCESSOR = (
    Option("--device", {"metavar": "NAME"}, "cpu, cuda, cuda:1, ... (default: a GPU if there is one)"),
    Option("--threads", COUNT, "CPU threads (default: OMP_NUM_THREADS, else all cores)"),
)


def add_options(parser: argparse._ActionsContainer, options: Iterable[Option]) -> None:
    """Add options to a parser, or to a group of one."""
    for option in options:
        parser.add_argument(option.flag, help=option.help, **option.settings)


def list_changes(options: argparse.Namespace, known: Iterable[Option]) -> dict[str, Any]:
    """Return the values given for settings of the model folder, by name."""
    values = {option.name: getattr(options, option.name) for option in known if option.changes_folder}
    return {name: value for name, value in values.items() if value is not None}


def check_range(options: argparse.Namespace, least: int, most: int, *names: str) -> None:
    """Raise ValueError unless each of these options that was given is a number from `least` to `most`."""
    for name in names:
        value = getattr(options, name)
        if value is not None and not least <= value <= most:
            raise ValueError(
                f"--{name.replace('_', '-')}: expected a number from {least:,} to {most:,}, found {value}."
            )


def require_packages(command: str, *names: str) -> None:
    """Raise ValueError if packages of a command are not installed; the extra with them has its name."""
    missing = [name for name in names if find_spec(name) is None]
    if missing:
        raise ValueError(
            f"{command} needs {', '.join(missing)}. Install it: pip install 'convs2s[{command}]'."
        )


@contextmanager
def pause_garbage_collection() -> Iterator[None]:
    """Create objects that live until the process exits, such as imports or a model, unscanned for garbage.

    Python would scan them while they are created, and again whenever many other objects have been: a tenth of
    a second each time for PyTorch's alone.
    """
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()
