"""What a GPU does with convs2s: `make gpu-report` writes report.md and report.json within 10 minutes.

The parts are in the order of what matters: what starting an operation costs the host, how fast products are,
search, updates, the tests that need a GPU. Each is a process of its own: if one fails or its time is up, the
others still run, and its rows so far are kept. No network is needed. --toy runs all at toy size on the CPU.
"""

import argparse
import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

from benchmarks.synthetic import SENTENCE
from convs2s.base.messages import report_errors

SECONDS = 590
"""For all parts together."""
SHORTEST = 20
"""A part for which fewer seconds are left does not begin."""
SMALL = "default", "recorded", "compiled", "compiled per shape"
TESTS = ("tests/train/test_on_gpu.py", "tests/search/test_on_gpu.py")


@dataclass(frozen=True)
class Part:
    """A part of the report.

    Attributes:
        command: arguments of `python -m`.
        seconds: at most.
        toy: the command for a CPU; None for the same one with --toy.
    """

    title: str
    command: tuple[str, ...]
    seconds: int
    toy: tuple[str, ...] | None = None


def parts(given_model: Sequence[str]) -> list[Part]:
    """Return all parts, in the order in which they run.

    Args:
        given_model: options for a model whose search to measure.
    """
    here = "benchmarks.gpu_report"
    updates = f"{here}.updates", "--variants"
    tests = "pytest", "-v", "-m", "gpu", "-p", "no:cacheprovider", *TESTS
    return [
        Part("What an operation costs the host", (f"{here}.launches",), 90),
        Part("Matrix products", (f"{here}.products",), 60),
        Part("Search", (f"{here}.searches", *given_model), 150),
        Part("Updates", (*updates, "version 1.0.0", "default"), 90),
        Part("Updates of 48 sentences", (*updates, *SMALL, "--tokens", str(48 * SENTENCE)), 180),
        Part("Updates with torch.compile", (*updates, "compiled"), 150),
        Part("Tests that need a GPU", tests, 240, toy=("pytest", "--version")),
    ]


def run(command: Sequence[str], seconds: float) -> Iterator[str]:
    """Run a module; yield the lines that it prints, then how it ended and how long it took."""
    start = time.monotonic()
    process = subprocess.Popen(
        [sys.executable, "-u", "-m", *command],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    is_late = threading.Event()

    def end() -> None:
        is_late.set()
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)  # with the processes that compile for it

    timer = threading.Timer(seconds, end)
    timer.start()
    try:
        assert process.stdout is not None
        yield from process.stdout
        status = process.wait()
    finally:
        timer.cancel()
    ended = "ended, as its time was up" if is_late.is_set() else f"exit status {status}"
    yield f"\n{ended}, {time.monotonic() - start:.0f} s\n"


def write_report(folder: Path, chosen: Sequence[Part], is_toy: bool) -> None:
    """Run parts, and write what they print and their rows as they come."""
    end = time.monotonic() + SECONDS
    results = {}
    with (folder / "report.md").open("w", encoding="utf-8") as report:

        def show(text: str) -> None:
            for stream in (sys.stdout, report):
                stream.write(text)
                stream.flush()

        show("# Report of a GPU\n")
        for part in chosen:
            show(f"\n## {part.title}\n\n")
            # At toy size all parts are to run, on however busy a machine.
            seconds = SECONDS if is_toy else min(part.seconds, end - time.monotonic())
            if seconds < SHORTEST:
                show("No time was left.\n")
                continue
            rows = folder / "rows.json"
            rows.unlink(missing_ok=True)
            command = [*part.command]
            if command[0] != "pytest":
                command += ["--json", str(rows)]
            if is_toy:
                command = [*part.toy] if part.toy else [*command, "--toy"]
            for line in run(command, seconds):
                show(line)
            if rows.exists():
                results[part.title] = json.loads(rows.read_text(encoding="utf-8"))
                rows.unlink()
            (folder / "report.json").write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")


def main(arguments: Sequence[str] | None = None) -> None:
    """Check the options, and write the report."""
    parser = argparse.ArgumentParser(prog="gpu-report", description=__doc__)
    add = parser.add_argument
    add("--out", type=Path, default=Path("data/gpu-report"), help="folder of the report")
    add("--toy", action="store_true", help="at toy size on the CPU, to check that all works")
    add("--model", type=Path, help="model folder whose search to measure as well")
    add("--source", type=Path, help="text that it translates")
    options = parser.parse_args(arguments)
    if not options.toy and not torch.cuda.is_available():
        raise ValueError(
            f"expected a GPU, but PyTorch {torch.__version__} finds none (it is built for CUDA "
            f"{torch.version.cuda}). See whether nvidia-smi lists one; to try the report at toy size on the "
            "CPU, run make gpu-report TOY=1."
        )
    if (options.model is None) != (options.source is None):
        raise ValueError("expected both --model and --source, or neither.")
    given_model = [] if options.model is None else [f"--model={options.model}", f"--source={options.source}"]
    options.out.mkdir(parents=True, exist_ok=True)
    write_report(options.out, parts(given_model), options.toy)
    print(f"\n{options.out / 'report.md'}")


if __name__ == "__main__":
    with report_errors("gpu-report", "", ""):
        main()
