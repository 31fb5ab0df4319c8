"""The command `convs2s`; its commands are in `convs2s.commands`."""

import argparse
import sys
from collections.abc import Sequence
from importlib.metadata import version

from convs2s.base.messages import replace_closed_streams, report_errors
from convs2s.commands import folders, import_fairseq, serve, translate

# Each adds the parser of a command, whose run(options) does the slow imports.
COMMANDS = (
    translate.add, serve.add, folders.add_attention, folders.add_candidates, import_fairseq.add,
)  # fmt: skip


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return its exit status: 0, 2 on error, 130 if interrupted, 141 on a broken pipe."""
    replace_closed_streams()
    command = parser()
    if not (sys.argv[1:] if arguments is None else arguments):
        command.print_help(sys.stderr)
        return 2
    options = command.parse_args(arguments)
    search = "Lower --batch-sentences or --beam-size."
    advice = search if "batch_sentences" in options else "Use a machine with more memory."
    try:
        with report_errors("convs2s", advice, ""):
            options.run(options)
    except SystemExit as end:
        return int(end.code or 0)
    return 0


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    command = argparse.ArgumentParser(
        prog="convs2s", description="Convolutional sequence to sequence learning."
    )
    command.add_argument("--version", action="version", version=f"%(prog)s {version('convs2s')}")
    commands = command.add_subparsers(required=True, metavar="COMMAND")
    for add_parser in COMMANDS:
        add_parser(commands)
    return command


if __name__ == "__main__":
    sys.exit(main())
