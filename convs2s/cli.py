"""The command `convs2s`; its commands are in `convs2s.commands`."""

import argparse
import sys
import warnings
from collections.abc import Sequence
from importlib.metadata import version

from convs2s.base.messages import message_of, reader_is_gone, visible
from convs2s.commands import folders, import_fairseq, serve, translate

# Each adds the parser of a command, whose run(options) does the slow imports.
COMMANDS = (
    translate.add, serve.add, folders.add_attention, folders.add_candidates, import_fairseq.add,
)  # fmt: skip


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return its exit status: 0, 2 on error, 130 if interrupted, 141 on a broken pipe."""
    command = parser()
    if not (sys.argv[1:] if arguments is None else arguments):
        command.print_help(sys.stderr)
        return 2
    options = command.parse_args(arguments)
    try:
        with warnings.catch_warnings():
            warnings.showwarning = lambda message, *_, **__: complain(f"warning: {message}")
            options.run(options)
    except BrokenPipeError:
        return reader_is_gone()
    except KeyboardInterrupt:
        return 130
    except Exception as error:
        text = message_of(error, memory_advice(options))
        if text is None:
            raise
        complain(f"error: {text}")
        for note in getattr(error, "__notes__", ()):  # such as the rows of a report
            print(visible(note), file=sys.stderr)
        return 2
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


def complain(message: str) -> None:
    """Write a message to standard error, on one line."""
    print("convs2s:", visible(" ".join(message.split())), file=sys.stderr)


def memory_advice(options: argparse.Namespace) -> str:
    """Return what to do if memory runs out."""
    if "batch_sentences" in options:
        return "Lower --batch-sentences or --beam-size."
    return "Use a machine with more memory."


if __name__ == "__main__":
    sys.exit(main())
