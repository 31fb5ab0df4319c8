"""Shared parts of the benchmarks: the machine and its peak speed, rounds in turns, and the output file.

Speeds are units per second of wall time and of processor time, the latter for all threads together. The
second hardly depends on other load: compare it on a shared machine.
"""

import json
import platform
import statistics
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
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


@dataclass(frozen=True)
class Spread:
    """Median, minimum and maximum of some values."""

    median: float
    lowest: float
    highest: float


def machine(packages: Iterable[str] = ()) -> dict[str, Any]:
    """Return the conditions of a measurement: hardware, threads, versions of PyTorch and these packages."""
    found: dict[str, Any] = {
        "cpu": cpu_name(),
        "cpu_features": torch.backends.cpu.get_cpu_capability(),
        "auto": str(choose_precision("auto", torch.device("cpu"))),
        "threads": torch.get_num_threads(),
        "python": platform.python_version(),
        "torch": str(torch.__version__),
    }
    if torch.cuda.is_available():
        found |= {"gpu": torch.cuda.get_device_name(), "cuda": torch.version.cuda}
    return found | {name: one for name in packages if (one := find_version(name)) is not None}


def find_version(package: str) -> str | None:
    """Return the version of a package; None if it is not installed."""
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def wait(device: torch.device) -> None:
    """Wait until a device has finished its work."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def measure(work: Work, device: torch.device) -> Speed:
    """Do the work once; return its speed."""
    wait(device)
    start = time.perf_counter(), time.process_time()
    units = work()
    wait(device)
    end = time.perf_counter(), time.process_time()
    processor = max(end[1] - start[1], 1e-9) / torch.get_num_threads()
    return Speed(units / (end[0] - start[0]), units / processor)


def in_turns(ways: Mapping[str, Work], rounds: int, device: torch.device) -> dict[str, list[Speed]]:
    """Run the alternatives in turns, after a warm-up; return the speeds of each by round."""
    for work in ways.values():
        work()
    speeds: dict[str, list[Speed]] = {name: [] for name in ways}
    for _ in range(rounds):
        for name, work in ways.items():
            speeds[name].append(measure(work, device))
    return speeds


def spread(values: Sequence[float]) -> Spread:
    """Return the median of at least one value, with minimum and maximum."""
    return Spread(statistics.median(values), min(values), max(values))


def speeds_as_json(speeds: Sequence[Speed]) -> dict[str, dict[str, float]]:
    """Return the spread of both speeds over the rounds."""
    return {
        "per_second": asdict(spread([speed.clock for speed in speeds])),
        "per_processor_second": asdict(spread([speed.processor for speed in speeds])),
    }


def fast_dtypes(device: torch.device) -> list[Precision]:
    """Return the floating-point types in which a device does not multiply slower than in float32."""
    return [name for name in DTYPES if not choose_precision(name, device).is_slow]


def product_peaks(device: torch.device, names: Iterable[str]) -> dict[str, float]:
    """Return the FLOP/s of large matrix products on this machine, by dtype."""
    return {name: product_peak(getattr(torch, name), device) for name in names}


def product_peak(dtype: torch.dtype, device: torch.device) -> float:
    """Return the highest of 20 speeds; on a CPU, by processor time."""
    rows = ROWS[device.type]
    x, y = (torch.randn(rows, rows, device=device).to(dtype) for _ in range(2))
    product = x @ y

    def multiply() -> float:
        torch.mm(x, y, out=product)
        return 2.0 * rows**3

    speeds = [measure(multiply, device) for _ in range(20)]
    return max(speed.clock if device.type == "cuda" else speed.processor for speed in speeds)


def counted_flop(work: Callable[[], object]) -> float:
    """Do the work; return the FLOP of its matrix products, including backward."""
    with FlopCounterMode(display=False) as counter:
        work()
    return float(counter.get_total_flops())


def write_report(path: Path, about: Mapping[str, Any], results: Sequence[Mapping[str, Any]]) -> None:
    """Write a benchmark's results as JSON, with their conditions."""
    content = {**about, "results": list(results)}
    path.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")


def print_table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Print a table in Markdown, each row as soon as it is available."""
    for line in table(columns, rows):
        print(line, flush=True)


def table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> Iterator[str]:
    """Yield the lines of a table in Markdown; floats have three digits, or from 100 on, no decimals."""
    yield "| " + " | ".join(columns) + " |"
    yield "|---|" + "---:|" * (len(columns) - 1)
    for row in rows:
        yield "| " + " | ".join(map(format_value, row)) + " |"


def format_value(value: object) -> str:
    """Return a cell of the table."""
    if not isinstance(value, float):
        return str(value).replace("|", "\\|")
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
