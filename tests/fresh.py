"""Run a module as a program in this process; start processes that have imported nothing from the project.

This module itself must not import from the project, or the fresh process would, too.
"""

import contextlib
import functools
import multiprocessing
import runpy
import shlex
import sys
import warnings
from multiprocessing.context import ForkServerContext
from pathlib import Path
from unittest import mock

# These imports take most of a stage's time, so fresh processes are forked from one that has them already.
LIBRARIES = ["torch", "ruamel.yaml", "pandas", "matplotlib.figure", "sacremoses", "sacrebleu"]
LIBRARIES += ["pydantic.main", "pydantic.types", "rouge_score.rouge_scorer", "numba", "numba.cpython.charseq"]


def run_here(command: str, folder: Path) -> None:
    """Run `python -m MODULE ARGUMENTS` in this process."""
    python, option, module, *arguments = shlex.split(command)
    assert (python, option) == ("python", "-m"), command
    with (
        contextlib.chdir(folder),
        mock.patch.object(sys, "argv", [module, *arguments]),
        warnings.catch_warnings(),
    ):
        warnings.filterwarnings("ignore", "'.*' found in sys.modules after import")  # by other tests
        runpy.run_module(module, run_name="__main__", alter_sys=True)


@functools.cache
def context() -> ForkServerContext:
    """Return a fork server, the same for all tests, that has already imported LIBRARIES."""
    server = multiprocessing.get_context("forkserver")
    server.set_forkserver_preload(LIBRARIES)
    return server
