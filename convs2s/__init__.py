"""Convolutional sequence to sequence learning; `convs2s.load(DIR)` gives a translator."""

from typing import Any


def __getattr__(name: str) -> Any:
    # PyTorch takes seconds to import; text stages must not pay for it.
    if name == "load":
        from convs2s.package.translator import load  # noqa: PLC0415

        return load
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
