"""Import a stage as if PyTorch were not installed."""

import importlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from unittest import mock


@contextmanager
def imported_without_torch(stage: str) -> Iterator[ModuleType]:
    """Re-import a stage and all project modules it needs; within, importing PyTorch is an error."""
    with mock.patch.dict(sys.modules, {"torch": None}):
        for name in [name for name in sys.modules if name.split(".")[0] in {"convs2s", "pipelines"}]:
            del sys.modules[name]
        yield importlib.import_module(f"pipelines.stages.{stage}")
