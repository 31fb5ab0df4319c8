"""A command-line parser that suggests the name that was probably meant."""

import argparse
import difflib
from collections.abc import Iterable
from typing import Any


class SuggestingParser(argparse.ArgumentParser):
    """Reports an unknown argument with the usage of the command it was given to, and suggests a known one."""

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parse the arguments; exit at an unknown one.

        argparse itself would leave that to the parser of `convs2s`, which does not know a command's options.
        """
        options, unknown = super().parse_known_args(args, namespace)
        if unknown:
            names = [argument.partition("=")[0] for argument in unknown if argument.startswith("-")]
            hints = [suggestion(name, self._option_string_actions) for name in names]
            if not names and "--input" in self._option_string_actions:
                hints.append("; a file to read goes after --input")
            self.error(f"unrecognized arguments: {' '.join(unknown)}{''.join(dict.fromkeys(hints))}")
        return options, unknown

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        try:
            super()._check_value(action, value)
        except argparse.ArgumentError as error:
            error.message += suggestion(str(value), map(str, action.choices or ()))
            raise


def suggestion(unknown: str, known: Iterable[str]) -> str:
    """Return the end of a message about an unknown name: the most similar known names, if there are any."""
    names = {name.lstrip("-"): name for name in known}  # dashes would make all options alike
    near = difflib.get_close_matches(unknown.lstrip("-"), list(names), n=2)
    return f"; did you mean {' or '.join(names[name] for name in near)}?" if near else ""
