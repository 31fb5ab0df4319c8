"""A model to be filled from a file: all shapes, no values, and no time lost."""

import sys
from typing import Any

import pytest

from convs2s.model.initialization import fold_weight_norm
from convs2s.model.storage import build_unfilled
from tests.model.small import PAD, small_model, small_params


@pytest.mark.parametrize("changes", [{}, {"source_positions": False, "target_positions": False}])
def test_it_has_the_weights_of_a_model_with_values(changes: dict[str, Any]) -> None:
    """Names and shapes are the same, with weight norm folded in; nothing is allocated."""
    built, unfilled = small_model(**changes), build_unfilled(small_params(**changes), 40, 50, PAD)
    fold_weight_norm(built)
    assert all(weight.is_meta for weight in unfilled.parameters())
    found, wanted = unfilled.state_dict(), built.state_dict()
    assert {name: (w.shape, w.dtype) for name, w in found.items()} == {
        name: (w.shape, w.dtype) for name, w in wanted.items()
    }


def test_it_is_built_without_computing_anything() -> None:
    """PyTorch would do so in Python (torch._refs), and import its compiler first, which takes a second."""
    files = set()
    sys.setprofile(lambda frame, *_: files.add(frame.f_code.co_filename))
    try:
        build_unfilled(small_params(), 40, 50, PAD)
    finally:
        sys.setprofile(None)
    assert any("convs2s/model" in file for file in files)
    assert not [file for file in files if "torch/_refs" in file or "torch/_dynamo" in file]
