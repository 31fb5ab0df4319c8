"""Shapes are checked in a test's first calls of a function, of each test anew."""

import pytest
import torch
from jaxtyping import Float, TypeCheckError, jaxtyped
from torch import Tensor

from tests import shapes


@jaxtyped(typechecker=shapes.checked)
def first_row(x: Float[Tensor, "B C"]) -> Float[Tensor, " C"]:
    """Return what is no row if there is one element a row."""
    return x[0] if x.shape[1] > 1 else x


WRONG = {"argument": torch.zeros(2), "result": torch.zeros(2, 1)}


@pytest.mark.parametrize("fault", WRONG)
def test_the_first_calls_are_checked_and_those_of_the_next_test_again(
    fault: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Twenty, arguments and results alike."""
    monkeypatch.delenv("CHECK_ALL_SHAPES", raising=False)
    for _ in range(2):
        shapes.begin()
        for _ in range(shapes.CALLS - 1):
            first_row(torch.zeros(2, 3))
        with pytest.raises(TypeCheckError, match=r"first_row"):
            first_row(WRONG[fault])
        first_row(torch.zeros(2, 1))  # nobody looks any more


def test_all_calls_are_checked_if_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    """As before."""
    monkeypatch.setenv("CHECK_ALL_SHAPES", "1")
    for _ in range(shapes.CALLS + 5):
        first_row(torch.zeros(2, 3))
    with pytest.raises(TypeCheckError, match=r"first_row"):
        first_row(torch.zeros(2, 1))
