"""Whether the engine is used: on a CPU, if it computes what `convs2s.model` does and is not turned off.

The engine has faster copies of the model's formulas. Unchecked, whoever edits only the model might train one
model and decode with another. So each fast path is compared with the plain one when it is built, on the model
at hand. If they differ by more than rounding, the plain one is used, with a warning.
"""

import os
import warnings

from torch import Tensor

VARIABLE = "CONVS2S_ENGINE"
"""Environment variable: `plain` turns the engine off; `auto`, the default, uses it."""
TOLERANCE = 1e-4
"""Differences by rounding are 1e-7 to 1e-5 of the largest number."""
SMALL_ROW = 0.01
TINY = 1e-30


def is_engine_wanted() -> bool:
    """Return whether the engine may be used."""
    wanted = os.environ.get(VARIABLE) or "auto"
    if wanted not in ("auto", "plain"):
        raise ValueError(f"{VARIABLE}: expected auto or plain, found {wanted!r}.")
    return wanted == "auto"


def relative_difference(expected: Tensor, found: Tensor, least: float = 0.0) -> float:
    """Return the largest difference relative to the largest expected number, or to `least` if that is larger.

    It is NaN if any number is.
    """
    if expected.shape != found.shape:
        return float("inf")
    if not expected.numel():
        return 0.0
    largest = max(float(expected.abs().max()), least)
    difference = float((found - expected).abs().max())
    return difference / largest if difference else 0.0


def difference_of_rows(expected: Tensor, found: Tensor) -> float:
    """Return the largest of the rows' differences, each relative to the largest expected number of the row.

    An edit may act on a single row, whose numbers are small. Among those of all rows, at least 1 % of the
    largest counts.
    """
    if expected.shape != found.shape:
        return float("inf")
    largest = expected.abs().amax(dim=-1)
    differences = (found - expected).abs().amax(dim=-1)
    relative = differences / largest.clamp(min=max(float(SMALL_ROW * largest.max()), TINY))
    return float(relative.max())


def describe_difference(name: str, difference: float, tolerance: float = TOLERANCE) -> str | None:
    """Return a clause for a difference that is not rounding, else None."""
    return None if difference <= tolerance else f"{name} differ by {difference:.2g} of the largest"


def warn_of_difference(fast: str, file: str, plain: str, fault: str) -> None:
    """Warn that a fast path is left out.

    Args:
        fast: the name of the fast path.
        file: its file.
        plain: the file or folder of the formulas that it copies.
        fault: how it differs from them.
    """
    warnings.warn(
        f"{fast} is left out, as it does not compute what the model does: {fault}. It has its own copy, in "
        f"{file}, of the formulas in {plain}. What runs instead is the model itself, which is slower. After "
        f"an edit of the model, edit the copy as well, or set {VARIABLE}=plain; see "
        "docs/change-the-model.md.",
        stacklevel=2,
    )
