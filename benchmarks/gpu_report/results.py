"""How a part of the report measures, and what it writes: each row at once, in Markdown and JSON."""

import argparse
import statistics
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from benchmarks.machine import machine, make_parser, print_head, print_row, wait, write_report
from convs2s.train.setup import keep_freed_memory


@dataclass
class Results:
    """The rows of a part so far; a part that is killed leaves them in the file."""

    path: Path | None
    about: dict[str, Any]
    rows: list[dict[str, Any]] = field(default_factory=list)
    table: str = ""
    has_failed: bool = False

    def begin(self, table: str, columns: Sequence[str]) -> None:
        """Begin a table."""
        self.table = table
        print(f"\n{table}\n", flush=True)
        print_head(columns)

    def attempt(self, work: Callable[[], object]) -> None:
        """Do some work; if it fails, print the error and go on: the rest may work."""
        try:
            work()
        except Exception:
            print(f"\n```\n{traceback.format_exc()}```", flush=True)
            self.has_failed = True

    def end(self) -> None:
        """End the program, with status 1 if any work failed."""
        sys.exit(1 if self.has_failed else 0)

    def add(self, **values: object) -> None:
        """Add a row: the values of the table's columns, in their order."""
        print_row(list(values.values()))
        self.rows.append({"table": self.table, **values})
        write_report(self.path, self.about, self.rows)


def begin(
    description: str | None,
    arguments: Any,
    add_options: Callable[[argparse.ArgumentParser], None] = lambda _: None,
) -> tuple[argparse.Namespace, torch.device, Results]:
    """Read the options of a part; return them, the device, and where results go."""
    parser = make_parser(description)
    parser.add_argument("--toy", action="store_true", help="at toy size, on the CPU")
    add_options(parser)
    options = parser.parse_args(arguments)
    keep_freed_memory()
    device = torch.device("cpu" if options.toy else "cuda")
    about = {"machine": machine()}
    if device.type == "cuda":
        about["machine"] |= {
            "driver": query("driver_version"),
            "gpu_clock_now_and_highest": query("clocks.sm,clocks.max.sm"),
        }
    print(", ".join(f"{name} {value}" for name, value in about["machine"].items()), flush=True)
    return options, device, Results(options.json, about)


def query(fields: str) -> str:
    """Return what nvidia-smi says of the first GPU, or why it does not."""
    command = ["nvidia-smi", f"--query-gpu={fields}", "--format=csv,noheader", "--id=0"]
    return output(command)


def output(command: list[str]) -> str:
    """Return the first line that a program prints, or why it prints none."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=10, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"unknown ({error})"
    lines = (done.stdout.strip() or done.stderr.strip()).splitlines()
    return lines[0] if lines else "unknown (no output)"


def median_seconds(work: Callable[[], object], device: torch.device, count: int) -> float:
    """Return the median seconds of a call, until the device has done its work."""
    seconds = []
    for _ in range(count):
        wait(device)
        begin = time.perf_counter()
        work()
        wait(device)
        seconds.append(time.perf_counter() - begin)
    return statistics.median(seconds)


def device_seconds(work: Callable[[], object], device: torch.device, repeats: int = 10) -> float:
    """Return the device's own seconds for a call: those of a CUDA graph of several, which need no host."""
    if device.type != "cuda":
        return median_seconds(work, device, 3)
    work()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(repeats):
            work()
    graph.replay()
    return median_seconds(graph.replay, device, 5) / repeats
