"""The receptive field of stacked convolutions (§3.2)."""

from collections.abc import Sequence


def receptive_field(kernel_widths: Sequence[int]) -> int:
    """Return the number of inputs that each output of the stacked layers depends on (§3.2, §5.4)."""
    return 1 + sum(width - 1 for width in kernel_widths)
