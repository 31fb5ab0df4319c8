"""Run a module as a program, in this process or in one that has imported nothing from the project.

This module itself must not import from the project, or the fresh process would, too.
"""

import contextlib
import functools
import multiprocessing
import runpy
import shlex
import sys
import warnings
from concurrent.futures import ProcessPoolExecutor
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


def run_fresh(command: str, folder: Path) -> set[str]:
    """Run `python -m MODULE ARGUMENTS` in a fresh process; return the project's modules that it imported."""
    with ProcessPoolExecutor(1, context()) as processes:
        return processes.submit(run_and_look, command, folder).result()


def run_and_look(command: str, folder: Path) -> set[str]:
    """Run the command in this process; return the project's modules imported by then."""
    assert not of_project(), "the process is not fresh"
    run_here(command, folder)
    assert "torch._dynamo" not in sys.modules, (
        "a stage has loaded PyTorch's compiler, more than a second's work"
    )
    return of_project()


def of_project() -> set[str]:
    """Return the project's modules that have been imported."""
    return {name for name in sys.modules if name.split(".")[0] in {"convs2s", "pipelines"}}


@functools.cache
def context() -> ForkServerContext:
    """Return a fork server, the same for all tests, that has already imported LIBRARIES."""
    server = multiprocessing.get_context("forkserver")
    server.set_forkserver_preload(LIBRARIES)
    return server
