"""The reference page of the `convs2s` commands, made from their `--help`."""

import argparse
import re
from collections.abc import Iterator
from typing import Any

from convs2s import cli
from pipelines.results.markdown import code, table

HEAD = """\
# Commands

`make reference` writes this page from the parsers behind `convs2s --help`. The pipeline's own commands are
the targets of the `Makefile`, and modules with a `--help`, such as `python -m pipelines.check`.
"""


def page() -> str:
    """Return the page as Markdown."""
    parser = cli.parser()
    lines = [HEAD]
    for name, command in subcommands(parser).items():
        lines += [
            f"## convs2s {name}",
            "",
            text((command.description or "").replace("%(prog)s", command.prog)),
            "",
        ]
        for group in command._action_groups:
            if found := list(rows(group, command)):
                title = [] if group.title in {"options", "positional arguments"} else [f"{group.title}:", ""]
                lines += [*title, *table(found), ""]
        lines += ["```text", (command.epilog or "").rstrip(), "```", ""] if command.epilog else []
    return "\n".join(lines)


def subcommands(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    """Return the parsers of the commands by name."""
    action = next(one for one in parser._actions if isinstance(one, argparse._SubParsersAction))
    return dict(action.choices)


def rows(group: Any, command: argparse.ArgumentParser) -> Iterator[dict[str, str]]:
    """Yield a row per argument of a group, except --help."""
    formatter = command._get_formatter()
    for action in group._group_actions:
        if not isinstance(action, argparse._HelpAction):
            yield {
                "argument": code(spelled(action)),
                "required": "yes" if action.required else "",
                "meaning": text(formatter._expand_help(action)).replace(" (default: None)", ""),
            }


def spelled(action: argparse.Action) -> str:
    """Return how an argument is written, such as `--model DIR...`."""
    value = action.metavar or ("|".join(map(str, action.choices)) if action.choices else action.dest.upper())
    more = "..." if action.nargs in {"+", "*"} else ""
    if not action.option_strings:
        return f"{value}{more}"
    flags = ", ".join(action.option_strings)
    return (
        flags
        if action.nargs == 0 or isinstance(action, argparse.BooleanOptionalAction)
        else f"{flags} {value}{more}"
    )


def text(help: str) -> str:
    """Return a help text on one line; characters of Markdown tags and emphasis are escaped outside code."""
    parts = " ".join(help.split()).split("`")  # every other one is code
    parts[::2] = [re.sub(r"([<*_])", r"\\\1", part) for part in parts[::2]]
    return "`".join(parts)
