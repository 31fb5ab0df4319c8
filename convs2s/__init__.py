"""Convolutional sequence to sequence learning; `convs2s.load(DIR)` gives a translator."""

import os
from pathlib import Path
from typing import Any

# PyTorch's threads must sleep while they wait, not spin: on shared cores, spinning threads block working
# ones, and training takes ten times as long. PyTorch reads this when it is imported, so set it before.
if "OMP_WAIT_POLICY" not in os.environ:
    os.environ["OMP_WAIT_POLICY"] = "PASSIVE"
    # But let them spin for a fraction of a millisecond first: most waits during training are over by then.
    os.environ.setdefault("GOMP_SPINCOUNT", "20000")
# Let PyTorch ask for huge pages for large tensors. The product of one row with a weight reads all of it, and
# looks up where each page is: with a large model, a single sentence takes a fifth less time.
if Path("/sys/kernel/mm/transparent_hugepage").is_dir():  # else it would warn that there are none
    os.environ.setdefault("THP_MEM_ALLOC_ENABLE", "1")


def __getattr__(name: str) -> Any:
    # PyTorch takes seconds to import; text stages must not pay for it.
    if name == "load":
        from convs2s.package.translator import load  # noqa: PLC0415

        return load
    if name == "__version__":
        from importlib.metadata import version  # noqa: PLC0415

        return version("convs2s")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
