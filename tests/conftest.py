"""Shape annotations are checked at run time throughout the tests."""

from pathlib import Path

import pytest
import torch
from jaxtyping import install_import_hook

install_import_hook(["convs2s.model", "convs2s.train", "convs2s.decode"], "beartype.beartype")

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Folder of real corpora beside the repository; tests that need it are skipped where it is not."""
    folder = ROOT.parent / "shared" / "data"
    if not folder.is_dir():
        pytest.skip("no folder ../shared/data with real corpora beside the repository")
    return folder


@pytest.fixture(autouse=True)
def _seed() -> None:
    torch.manual_seed(1)
