"""What earlier versions have written still loads, and gives what it gave (tests/golden/README.md)."""

import json

import pytest
import torch
from torch.testing import assert_close

from tests.golden import states

ROUNDING = {"atol": 1e-5, "rtol": 1e-5}


@pytest.mark.parametrize("name", states.names())
def test_a_model_folder_and_a_checkpoint_give_what_they_gave(name: str) -> None:
    """Translations and progress exactly, numbers but for rounding; a training goes on where it was."""
    recorded = json.loads((states.FOLDER / name / "results.json").read_text(encoding="utf-8"))
    results = states.results_of(states.FOLDER / name)
    assert results.keys() == recorded.keys()
    results["state"] = {key: results["state"][key] for key in recorded["state"]}  # a later key has its default
    for key, value in recorded.items():
        if isinstance(value, list | float) and key != "translations":
            assert_close(torch.tensor(results[key]), torch.tensor(value), **ROUNDING, msg=key)
        else:
            assert results[key] == value, key
