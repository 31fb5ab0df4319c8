"""Shape annotations are checked at run time throughout the tests, and each process computes on one thread."""

import os
from pathlib import Path

import pytest
import torch
from jaxtyping import install_import_hook

# pytest-xdist keeps the cores busy already: more threads than cores spend their time waiting for each other.
# Child processes inherit the variable. Set it to run the tests with more threads.
os.environ.setdefault("OMP_NUM_THREADS", "1")
torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))

install_import_hook(["convs2s.model", "convs2s.train", "convs2s.decode"], "beartype.beartype")

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Return the folder of real corpora next to the repository, or skip the test if there is none."""
    folder = ROOT.parent / "shared" / "data"
    if not folder.is_dir():
        pytest.skip("no folder ../shared/data with real corpora next to the repository")
    return folder


@pytest.fixture(autouse=True)
def _seed() -> None:
    torch.manual_seed(1)
