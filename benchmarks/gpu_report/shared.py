"""What the parts of the report share: the option --toy, the device, what the system says, and times."""

import argparse
import statistics
import subprocess
import time
from collections.abc import Callable

import torch

from benchmarks.harness import AddOptions, Main, Report, program, wait
from convs2s.train.setup import keep_freed_memory


def part(
    description: str | None,
    measure: Callable[[argparse.Namespace, torch.device, Report], None],
    add_options: AddOptions = lambda _: None,
) -> Main:
    """Return the `main` of a part: it measures on a GPU; with --toy on a CPU, too, at toy size."""

    def add_all_options(parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--toy", action="store_true", help="at toy size, on a CPU if there is no GPU")
        add_options(parser)

    def measure_there(options: argparse.Namespace, report: Report) -> None:
        keep_freed_memory()
        device = torch.device("cuda" if torch.cuda.is_available() or not options.toy else "cpu")
        if device.type == "cuda":
            report.about["machine"] |= {
                "driver": query("driver_version"),
                "gpu_clock_now_and_highest": query("clocks.sm,clocks.max.sm"),
            }
        measure(options, device, report)

    return program(description, add_all_options, measure_there)


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
