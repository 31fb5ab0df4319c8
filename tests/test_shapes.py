"""Shapes are checked in the first calls of a function, counted anew in each test."""

import pytest
import torch
from jaxtyping import Float, TypeCheckError, jaxtyped
from torch import Tensor

from tests import shapes


@jaxtyped(typechecker=shapes.checked)
def first_row(x: Float[Tensor, "B C"]) -> Float[Tensor, " C"]:
    """Return the first row; wrongly, the whole of `x` if rows have one element."""
    return x[0] if x.shape[1] > 1 else x


WRONG = {"argument": torch.zeros(2), "result": torch.zeros(2, 1)}


@pytest.mark.parametrize("fault", WRONG)
def test_the_first_calls_are_checked_and_those_of_the_next_test_again(
    fault: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Arguments and results are checked alike, in 20 calls."""
    monkeypatch.delenv("CHECK_ALL_SHAPES", raising=False)
    for _ in range(2):
        shapes.begin()
        for _ in range(shapes.CALLS - 1):
            first_row(torch.zeros(2, 3))
        with pytest.raises(TypeCheckError, match=r"first_row"):
            first_row(WRONG[fault])
        first_row(torch.zeros(2, 1))  # no longer checked


def test_all_calls_are_checked_on_request(monkeypatch: pytest.MonkeyPatch) -> None:
    """A wrong shape may first appear in a later call."""
    monkeypatch.setenv("CHECK_ALL_SHAPES", "1")
    for _ in range(shapes.CALLS + 5):
        first_row(torch.zeros(2, 3))
    with pytest.raises(TypeCheckError, match=r"first_row"):
        first_row(torch.zeros(2, 1))
