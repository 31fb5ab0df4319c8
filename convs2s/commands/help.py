"""The format of `--help`: defaults where there are any, examples as typed."""

import argparse


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


def examples(*commands: str) -> str:
    """Return the last part of a command's help: command lines to copy."""
    title = "examples:" if len(commands) > 1 else "example:"
    return "\n".join([title, *(f"  {command}" for command in commands)])
