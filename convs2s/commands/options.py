"""Options shared by several commands, and their checks."""

import argparse
from collections.abc import Callable


def add_processor(add: Callable[..., object]) -> None:
    """Add the options for the device; `add` is the parser's or a group's `add_argument`."""
    add("--device", metavar="NAME", help="cpu, cuda, cuda:1, ... (default: a GPU if there is one)")
    add("--threads", type=int, metavar="N", help="CPU threads (default: OMP_NUM_THREADS, else all cores)")


def check_positive(options: argparse.Namespace, *names: str) -> None:
    """Check that each of these options, if it was given, is at least 1.

    Raises:
        ValueError: naming the first that is not.
    """
    for name in names:
        value = getattr(options, name)
        if value is not None and value < 1:
            raise ValueError(f"--{name.replace('_', '-')}: found {value}, wanted 1 or more.")
