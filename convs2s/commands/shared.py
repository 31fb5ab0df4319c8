"""What the commands share: the format of help, hints for wrong names, common options, and loading."""

import argparse
import difflib
import gc
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any


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


class SuggestingParser(argparse.ArgumentParser):
    """Reports an unknown argument with the usage of the command it was given to, and suggests a known one."""

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parse the arguments; exit at an unknown one.

        argparse itself would leave that to the parser of `convs2s`, which does not know a command's options.
        """
        options, unknown = super().parse_known_args(args, namespace)
        if unknown:
            names = [argument.partition("=")[0] for argument in unknown if argument.startswith("-")]
            hints = [suggest(name, self._option_string_actions) for name in names]
            if not names and "--input" in self._option_string_actions:
                hints.append("; a file to read goes after --input")
            self.error(f"unrecognized arguments: {' '.join(unknown)}{''.join(dict.fromkeys(hints))}")
        return options, unknown

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        try:
            super()._check_value(action, value)
        except argparse.ArgumentError as error:
            error.message += suggest(str(value), map(str, action.choices or ()))
            raise


def suggest(unknown: str, known: Iterable[str]) -> str:
    """Return the end of a message about an unknown name: the most similar known names, if there are any."""
    names = {name.lstrip("-"): name for name in known}  # dashes would make all options alike
    near = difflib.get_close_matches(unknown.lstrip("-"), list(names), n=2)
    return f"; did you mean {' or '.join(names[name] for name in near)}?" if near else ""


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


def add_processor(add: Callable[..., object]) -> None:
    """Add the options for the device; `add` is the parser's or a group's `add_argument`."""
    add("--device", metavar="NAME", help="cpu, cuda, cuda:1, ... (default: a GPU if there is one)")
    add("--threads", type=int, metavar="N", help="CPU threads (default: OMP_NUM_THREADS, else all cores)")


def check_positive(options: argparse.Namespace, *names: str) -> None:
    """Raise ValueError unless each of these options that was given is at least 1."""
    for name in names:
        value = getattr(options, name)
        if value is not None and value < 1:
            raise ValueError(f"--{name.replace('_', '-')}: expected 1 or more, found {value}.")


@contextmanager
def pause_garbage_collection() -> Iterator[None]:
    """Create objects that live until the process exits, such as imports or a model, unscanned for garbage.

    Python would scan them while they are created, and again whenever many other objects have been: a tenth of
    a second each time for PyTorch's alone.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        if enabled:
            gc.enable()
