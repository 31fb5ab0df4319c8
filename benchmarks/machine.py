"""Shared parts of the benchmarks: the machine and its peak speed, rounds in turns, and the output file.

Speeds are units per second of wall time and of processor time, the latter for all threads together. The
second hardly depends on other load: compare it on a shared machine.
"""

import argparse
import contextlib
import json
import platform
import resource
import statistics
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import torch
from torch.utils.flop_counter import FlopCounterMode

from convs2s.model.precision import Precision, choose_precision
from convs2s.train.distributed import cpu_name

DTYPES: tuple[Precision, ...] = ("float32", "bfloat16")
ROWS = {"cuda": 8192, "cpu": 1024}  # of the matrices whose products show a device's peak speed
Work = Callable[[], float]
"""Does some work and returns its units, such as tokens."""


@dataclass(frozen=True)
class Speed:
    """Units per second of wall time; and per second of processor time, times the number of threads."""

    clock: float
    processor: float


def make_parser(description: str | None) -> argparse.ArgumentParser:
    """Return a parser with a module's docstring as its help, and the option that all benchmarks have."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the results to this file")
    return parser


def machine(packages: Iterable[str] = ()) -> dict[str, Any]:
    """Return the conditions of a measurement: hardware, threads, versions of PyTorch and these packages."""
    conditions: dict[str, Any] = {
        "cpu": cpu_name(),
        "cpu_features": torch.backends.cpu.get_cpu_capability(),
        "auto": str(choose_precision("auto", torch.device("cpu"))),
        "threads": torch.get_num_threads(),
        "python": platform.python_version(),
        "torch": str(torch.__version__),
    }
    if torch.cuda.is_available():
        conditions |= {"gpu": torch.cuda.get_device_name(), "cuda": torch.version.cuda}
    for package in packages:
        with contextlib.suppress(PackageNotFoundError):
            conditions[package] = version(package)
    return conditions


def wait(device: torch.device) -> None:
    """Wait until a device has finished its work."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def measure(work: Work, device: torch.device) -> Speed:
    """Do the work once; return its speed."""
    wait(device)
    clock_start = time.perf_counter()
    processor_start = time.process_time()
    units = work()
    wait(device)
    clock = time.perf_counter() - clock_start
    processor = max(time.process_time() - processor_start, 1e-9) / torch.get_num_threads()
    return Speed(units / clock, units / processor)


def children_cpu_seconds() -> float:
    """Return the processor time of all processes that have ended below this one."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def in_turns(ways: Mapping[str, Work], rounds: int, device: torch.device) -> dict[str, list[Speed]]:
    """Run the alternatives in turns, after a warm-up; return the speeds of each by round."""
    for work in ways.values():
        work()
    speeds: dict[str, list[Speed]] = {name: [] for name in ways}
    for _ in range(rounds):
        for name, work in ways.items():
            speeds[name].append(measure(work, device))
    return speeds


def spread(values: Sequence[float]) -> dict[str, float]:
    """Return the median of at least one value, with minimum and maximum."""
    return {"median": statistics.median(values), "lowest": min(values), "highest": max(values)}


def speeds_as_json(speeds: Sequence[Speed]) -> dict[str, dict[str, float]]:
    """Return the spread of both speeds over the rounds."""
    return {
        "per_second": spread([speed.clock for speed in speeds]),
        "per_processor_second": spread([speed.processor for speed in speeds]),
    }


def fast_dtypes(device: torch.device) -> list[Precision]:
    """Return the floating-point types in which a device does not multiply slower than in float32."""
    return [name for name in DTYPES if not choose_precision(name, device).is_slow]


def product_peak(name: str, device: torch.device) -> float:
    """Return a dtype's FLOP/s in large matrix products."""
    rows = ROWS[device.type]
    dtype: torch.dtype = getattr(torch, name)
    x = torch.randn(rows, rows, device=device).to(dtype)
    y = torch.randn(rows, rows, device=device).to(dtype)
    product = x @ y

    def multiply() -> float:
        torch.mm(x, y, out=product)
        return 2.0 * rows**3

    return peak(multiply, device)


def peak(work: Work, device: torch.device) -> float:
    """Return the highest of 20 speeds: on a GPU by wall time, on a CPU by processor time."""
    speeds = [measure(work, device) for _ in range(20)]
    return max(speed.clock if device.type == "cuda" else speed.processor for speed in speeds)


def flop_per_unit(work: Work) -> float:
    """Do the work; return the FLOP of its matrix products, including backward, per unit."""
    with FlopCounterMode(display=False) as counter:
        units = work()
    return float(counter.get_total_flops()) / units


def write_report(path: Path | None, about: Mapping[str, Any], results: Sequence[Mapping[str, Any]]) -> None:
    """Write a benchmark's results as JSON, with their conditions, if a path is given."""
    if path is not None:
        content = {**about, "results": list(results)}
        path.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")


def print_table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Print a table in Markdown."""
    print_head(columns)
    for row in rows:
        print_row(row)


def print_head(columns: Sequence[str]) -> None:
    """Print the head of a table, of which `print_row` prints each row as soon as it is measured."""
    print("| " + " | ".join(columns) + " |\n|---|" + "---:|" * (len(columns) - 1), flush=True)


def print_row(row: Sequence[object]) -> None:
    """Print a row of a table."""
    print("| " + " | ".join(map(format_value, row)) + " |", flush=True)


def format_value(value: object) -> str:
    """Return a cell of the table: a float with three digits, or from 100 on, without decimals."""
    if not isinstance(value, float):
        return str(value).replace("|", "\\|")
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
