"""What all benchmarks share: options, the machine, lines of a text, turns, speeds, and the report.

A benchmark says what it measures: its own options, and a function that adds rows to a report.

    main = program(__doc__, add_options, measure)

Speeds are units per second of wall time and of processor time, the latter for all threads together. The
second hardly depends on other load: compare it on a shared machine.
"""

import argparse
import contextlib
import json
import platform
import random
import statistics
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Protocol, TypeVar

import torch
from torch.utils.flop_counter import FlopCounterMode

from convs2s.base.files import read_lines
from convs2s.model.precision import Precision, choose_precision
from convs2s.train.distributed import cpu_name

T = TypeVar("T")
Work = Callable[[], float]
"""Does some work and returns its units, such as tokens."""
AddOptions = Callable[[argparse.ArgumentParser], None]
DTYPES: tuple[Precision, ...] = ("float32", "bfloat16")
ROWS = {"cuda": 8192, "cpu": 1024}  # of the matrices whose products show a device's peak speed
TOY_ROWS = 64
SEED = 1
"""Of the lines that are drawn from a text."""
PATH: dict[str, Any] = {"type": Path, "required": True}
NUMBER: dict[str, Any] = {"type": int, "metavar": "N"}
COMMON_OPTIONS: dict[str, dict[str, Any]] = {
    "model": {**PATH, "metavar": "DIR", "help": "model folder, possibly an imported one"},
    "source": {**PATH, "metavar": "FILE", "help": "text, one sentence per line"},
    "target": {**PATH, "metavar": "FILE", "help": "its translation, line by line"},
    "sentences": {**NUMBER, "default": 1000, "help": "lines to draw from the text, always the same"},
    "beam_sizes": {**NUMBER, "nargs": "+", "default": [1, 5]},
    "rounds": {**NUMBER, "default": 5, "help": "in which all take turns, after a warm-up"},
    "threads": {**NUMBER, "default": 1, "help": "of PyTorch"},
    "processes": {**NUMBER, "default": 1, "help": "that share the work of a translation"},
    "device": {"default": "cpu", "help": "cpu or cuda"},
}


def add_common(parser: argparse.ArgumentParser, *names: str, **defaults: Any) -> None:
    """Add options that several benchmarks have, by name; keywords also change a default."""
    for name in (*names, *defaults):
        settings = COMMON_OPTIONS[name]
        if name in defaults:
            settings = settings | {"default": defaults[name], "required": False}
        parser.add_argument("--" + name.replace("_", "-"), **settings)


class Report:
    """What a benchmark measures: each row is printed, and written to a file, as soon as it is known.

    Attributes:
        path: of a file in JSON, with `about` and `results`; None to write none.
        about: the conditions, printed before the first table.
        results: the rows so far.
        has_failed: whether an attempt failed.
    """

    def __init__(self, path: Path | None, packages: Iterable[str] = ()) -> None:
        self.path = None if path is None else path.absolute()  # a benchmark may change the folder
        self.about: dict[str, Any] = {"machine": machine(packages)}
        self.results: list[dict[str, Any]] = []
        self.has_failed = False
        self._title: str | None = None
        self._columns: Sequence[str] = ()

    def note(self, **facts: Any) -> None:
        """Add conditions; numbers and names among them are printed."""
        self.about |= facts

    def draw(self, path: Path, count: int) -> list[str]:
        """Return lines of a text as `draw_lines`; note how many, and how many words they have on average."""
        lines = draw_lines(path, count)
        self.note(lines=len(lines), words_per_line=words_per_line(lines))
        return lines

    def table(self, columns: Sequence[str], title: str | None = None) -> None:
        """Begin a table, in Markdown; rows that are added have its title, if it has one."""
        if not self._columns:
            facts = {
                name: value for name, value in self.about.items() if isinstance(value, str | int | float)
            }
            for group in (self.about["machine"], facts):
                if group:
                    print(", ".join(f"{name} {format_value(value)}" for name, value in group.items()))
        self._title, self._columns = title, columns
        print(f"\n{title}\n" if title else "")
        print("| " + " | ".join(columns) + " |\n|---|" + "---:|" * (len(columns) - 1), flush=True)

    def print_row(self, cells: Iterable[object]) -> None:
        """Print a row that is no result."""
        print("| " + " | ".join(map(format_value, cells)) + " |", flush=True)

    def add(self, *cells: object, **result: Any) -> None:
        """Add a result to the table: its values in the order of the columns, or else the given cells."""
        self.print_row(cells or result.values())
        self.results.append({**({"table": self._title} if self._title else {}), **result})
        if self.path is not None:
            content = {**self.about, "results": self.results}
            self.path.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")

    def attempt(self, work: Callable[[], object]) -> None:
        """Do some work; if it fails, print the error and go on: the rest may work."""
        try:
            work()
        except Exception:
            print(f"\n```\n{traceback.format_exc()}```", flush=True)
            self.has_failed = True


class Main(Protocol):
    """What starts a benchmark."""

    def __call__(self, arguments: Sequence[str] | None = None) -> None:
        """Measure, with these arguments, or else with those of the command line."""


def program(
    description: str | None,
    add_options: AddOptions,
    measure: Callable[[argparse.Namespace, Report], None],
    packages: Iterable[str] = (),
) -> Main:
    """Return a benchmark's `main`: it reads options, measures, and ends with status 1 if an attempt failed.

    Args:
        description: the module's docstring, which is its help.
        packages: whose versions belong to the conditions.
    """

    def main(arguments: Sequence[str] | None = None) -> None:
        parser = argparse.ArgumentParser(
            description=description, formatter_class=argparse.RawDescriptionHelpFormatter
        )
        parser.add_argument("--json", type=Path, metavar="FILE", help="also write the results to this file")
        add_options(parser)
        options = parser.parse_args(arguments)
        if "threads" in options:
            torch.set_num_threads(options.threads)
        report = Report(options.json, packages)
        measure(options, report)
        if report.has_failed:
            sys.exit(1)

    return main


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


def draw_lines(path: Path, count: int) -> list[str]:
    """Return lines of a text that are not blank, in random order, at most `count`, always the same ones.

    The first lines would not be typical of a file that is sorted, such as the default test set, by length.
    """
    lines = [line for line in read_lines(path) if line.strip()]
    random.Random(SEED).shuffle(lines)
    return lines[:count]


def words_per_line(lines: Sequence[str]) -> float:
    """Return the mean number of whitespace-separated words in a line."""
    return sum(len(line.split()) for line in lines) / max(1, len(lines))


def in_turns(ways: Mapping[str, Callable[[], T]], rounds: int) -> dict[str, list[T]]:
    """Run the alternatives in turns, after a warm-up; return what each returned, by round."""
    for way in ways.values():
        way()
    measured: dict[str, list[T]] = {name: [] for name in ways}
    for _ in range(rounds):
        for name, way in ways.items():
            measured[name].append(way())
    return measured


def spread(values: Sequence[float]) -> dict[str, float]:
    """Return the median of at least one value, with minimum and maximum."""
    return {"median": statistics.median(values), "lowest": min(values), "highest": max(values)}


@dataclass(frozen=True)
class Measurement:
    """A measurement that is repeated: all its fields are numbers."""

    @classmethod
    def spreads(cls, measurements: Iterable["Measurement"]) -> dict[str, dict[str, float]]:
        """Return the spread of each field."""
        rounds = [asdict(measurement) for measurement in measurements]
        return {name: spread([values[name] for values in rounds]) for name in rounds[0]}


@dataclass(frozen=True)
class Speed(Measurement):
    """Units per second of wall time; and per second of processor time, times the number of threads."""

    per_second: float
    per_processor_second: float


def measure_speed(work: Work, device: torch.device) -> Speed:
    """Do the work once; return its speed."""
    wait(device)
    clock_start = time.perf_counter()
    processor_start = time.process_time()
    units = work()
    wait(device)
    clock = time.perf_counter() - clock_start
    processor = max(time.process_time() - processor_start, 1e-9) / torch.get_num_threads()
    return Speed(units / clock, units / processor)


def wait(device: torch.device) -> None:
    """Wait until a device has finished its work."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def speeds_in_turns(
    works: Mapping[str, Work], rounds: int, device: torch.device
) -> dict[str, dict[str, dict[str, float]]]:
    """Do different work in turns, after a warm-up; return the spread of both speeds, by name."""
    ways = {name: lambda work=work: measure_speed(work, device) for name, work in works.items()}
    return {name: Speed.spreads(speeds) for name, speeds in in_turns(ways, rounds).items()}


@dataclass(frozen=True)
class ProcessCost(Measurement):
    """What a process took, with all below it that it waited for: seconds, and the largest one's MiB."""

    seconds: float
    processor_seconds: float
    mib: float


def run_process(
    command: Sequence[str],
    text: str = "",
    watch: Callable[[int], None] | None = None,
    **settings: Any,
) -> ProcessCost:
    """Run a command that reads this text and whose output nobody reads; return its cost.

    Args:
        watch: called with the id of a process above it, again and again until it ends.
        settings: of subprocess.Popen.

    Raises:
        subprocess.CalledProcessError: if it fails.
    """
    measured = [sys.executable, "-I", str(Path(__file__).with_name("_process.py")), *command]
    with tempfile.TemporaryFile() as stdin:
        stdin.write(text.encode())
        stdin.seek(0)
        process = subprocess.Popen(measured, stdin=stdin, stdout=subprocess.PIPE, text=True, **settings)
    while watch and process.poll() is None:
        watch(process.pid)
    answer, _ = process.communicate()
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command)
    return ProcessCost(**json.loads(answer))


def fast_dtypes(device: torch.device) -> list[Precision]:
    """Return the floating-point types in which a device does not multiply slower than in float32."""
    return [name for name in DTYPES if not choose_precision(name, device).is_slow]


def product_peak(name: str, device: torch.device, *, toy: bool = False) -> float:
    """Return a dtype's FLOP/s in large matrix products; in small ones at toy size."""
    rows = TOY_ROWS if toy else ROWS[device.type]
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
    speeds = [measure_speed(work, device) for _ in range(20)]
    return max(s.per_second if device.type == "cuda" else s.per_processor_second for s in speeds)


def flop_per_unit(work: Work) -> float:
    """Do the work; return the FLOP of its matrix products, including backward, per unit."""
    with FlopCounterMode(display=False) as counter:
        units = work()
    return float(counter.get_total_flops()) / units


def format_value(value: object) -> str:
    """Return a cell of a table: a float with three digits, or from 100 on, without decimals."""
    if not isinstance(value, float):
        return str(value).replace("|", "\\|")
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
