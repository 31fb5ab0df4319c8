"""Errors as users see them: one message, and a traceback only for our own bugs or on request."""

import contextlib
import os
import re
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import IO, NoReturn

DEBUG = "CONVS2S_DEBUG"
"""Environment variable: with any value except 0, errors and interrupts show their traceback."""

TRAINING_MEMORY = "Lower train.max_tokens in params.yaml, or the widths of the model."
"""What to do if training runs out of memory."""

# Errors caused by files, values, other programs or the machine. Anything else is our bug.
EXPECTED = (OSError, ValueError, FloatingPointError)
OUT_OF_MEMORY = ("out of memory", "can't allocate memory", "_STATUS_ALLOC_FAILED")
"""What the error of PyTorch, cuBLAS or cuDNN says if memory has run out, of a GPU or the machine."""


def exit_without_reader() -> NoReturn:
    """Exit because nobody reads standard output; Python must not complain that it is closed."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    sys.exit(141)


def replace_closed_streams() -> None:
    """Take a closed standard stream's number, so that no file gets it; drop what goes to standard error."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # gets the lowest number that is free
    if sys.stderr is None:
        sys.stderr = Path(os.devnull).open("w")  # noqa: SIM115  # as long as the process


def is_terminal(stream: IO[str] | None) -> bool:
    """Return whether a standard stream, None if it is closed, is a terminal."""
    return stream is not None and stream.isatty()


@contextlib.contextmanager
def report_errors(program: str, memory_advice: str, interrupted: str) -> Iterator[None]:
    """Exit on an error that a user can act on, with one message, its notes, and no traceback.

    The exit status is 2, 130 after Ctrl-C, or 141 if standard output is closed. Warnings get a line each,
    without the place in the code.

    Args:
        program: begins the message.
        memory_advice: what to do if memory runs out; a sentence.
        interrupted: what to say after Ctrl-C; a sentence.
    """
    replace_closed_streams()
    debugging = os.environ.get(DEBUG, "0") not in ("", "0")
    try:
        with warnings.catch_warnings():
            warnings.showwarning = lambda message, *_, **__: warn(program, str(message))
            yield
    except BrokenPipeError:  # `| head`
        exit_without_reader()
    except KeyboardInterrupt:
        if debugging:
            raise
        print(f"{program}: interrupted. {interrupted}", file=sys.stderr)
        sys.exit(130)
    except Exception as error:
        text = str(error) or type(error).__name__
        if is_out_of_memory(error):
            amount = re.search(r"(?:tried|unable) to allocate [\d.,]+ \w+", text, re.IGNORECASE)
            text = f"out of memory{f' ({amount[0].lower()})' if amount else ''}. {memory_advice}"
        elif not isinstance(error, EXPECTED):
            raise
        if debugging:
            raise
        lines = [f"{program}: error: {text}", *getattr(error, "__notes__", ())]
        print(*map(visible, lines), sep="\n", file=sys.stderr)
        sys.exit(2)


def warn(program: str, message: str) -> None:
    """Show a warning on one line."""
    print(f"{program}: warning:", visible(" ".join(message.split())), file=sys.stderr)


def is_out_of_memory(error: BaseException) -> bool:
    """Return whether memory has run out: of Python, or of PyTorch, which raises a RuntimeError then.

    Readers that report any exception as a damaged file must let this one through.
    """
    is_of_torch = isinstance(error, RuntimeError) and any(sign in str(error) for sign in OUT_OF_MEMORY)
    return isinstance(error, MemoryError) or is_of_torch


def visible(text: str) -> str:
    """Return the text with U+FFFD for each control character except tabs and line ends.

    Text from files must not be able to control the terminal.
    """
    return re.sub(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]", "\N{REPLACEMENT CHARACTER}", text)


def redact(text: str) -> str:
    """Return a text without the user names, passwords and queries of the addresses in it.

    A password may have any character but spaces and quotes; one that is not quoted in its address, too.
    """
    if "//" in text:
        text = re.sub(r"(?<=//)[^\s/@:'\"]*(:(?!\d+[/\s'\"])[^\s'\"]*)?@", "", text)
    return re.sub(r"(://[^\s'\")?]*)?\?(?(1)|(?=[\w.%-]+=))[^\s'\")]+", r"\1?...", text)


def inflect(number: int, noun: str, plural: str | None = None) -> str:
    """Return a number with its noun: 1 line, 2,000 lines."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"
