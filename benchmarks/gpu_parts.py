"""The parts of the GPU report: each emits a row per measurement."""

import json
import os
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ET
from argparse import Namespace
from dataclasses import dataclass
from pathlib import Path

import torch
from torch.autograd import DeviceType
from torch.profiler import ProfilerActivity, profile

from benchmarks import train_step
from benchmarks.limited import Emit
from benchmarks.machine import machine, product_peaks, timed
from convs2s.train.run import train_model

GPU_TESTS = ("tests/train/fast/test_on_gpu.py", "tests/decode/test_on_gpu.py")

GPU_EVENT = DeviceType.CUDA


@dataclass(frozen=True)
class Sizes:
    """The extent of the measurements.

    Attributes:
        tests: test files, of which the tests marked `gpu` run.
        presets: whose models make updates; the first is also profiled, compiled and trained in parallel.
        tokens: approximate target tokens per update.
        channels: of all layers; None: the preset's.
        entries: vocabulary entries of each side; None: the preset's.
        rounds: of updates, by each variant in turn.
        updates: per round.
        parallel_updates: updates for each number of processes.
        sentences: to translate with random weights.
        precisions: of the translation.
    """

    tests: tuple[str, ...] = GPU_TESTS
    presets: tuple[str, ...] = ("wmt14-en-de-paper", "wmt14-en-fr-paper", "multi30k-en-de")
    tokens: tuple[int, ...] = (4000, 1000, 16000)
    channels: int | None = None
    entries: int | None = None
    rounds: int = 5
    updates: int = 10
    parallel_updates: int = 50
    sentences: int = 6003
    precisions: tuple[str, ...] = ("bfloat16", "float32")


TOY = Sizes(
    tests=("tests/text/test_counted.py",), presets=("multi30k-en-de",), tokens=(50,), channels=8, entries=40,
    rounds=1, updates=1, parallel_updates=2, sentences=3, precisions=("bfloat16",),
)  # fmt: skip


def device() -> torch.device:
    """Return the GPU, or the CPU if there is none."""
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


def about(emit: Emit, _: float) -> None:
    """Emit a description of the machine, and the speed of its matrix products."""
    found = machine(["numpy", "numba", "triton", "safetensors", "sacrebleu"])
    found |= {"GPUs": torch.cuda.device_count(), "cudnn": torch.backends.cudnn.version()}
    for name, value in found.items():
        emit({"what": name, "value": str(value)})
    for name, peak in product_peaks(device()).items():
        emit({"what": f"products in {name}, TFLOP/s", "value": peak / 1e12})
    if torch.cuda.is_available():
        emit({"what": "memory, GiB", "value": torch.cuda.get_device_properties(0).total_memory / 2**30})
    emit({"what": "copies on the device, GB/s read and written", "value": copy_speed() / 1e9})


def copy_speed() -> float:
    """Return the bytes per second, read and written, of a copy."""
    here = device()
    source = torch.ones(1 << (30 if here.type == "cuda" else 20), dtype=torch.uint8, device=here)
    target = torch.empty_like(source)

    def copy() -> float:
        target.copy_(source)
        return 2.0 * len(source)

    return max(timed(copy, here).clock for _ in range(5))


def tests(sizes: Sizes, emit: Emit, seconds: float) -> None:
    """Run the tests that need a GPU; emit the outcome of each."""
    with tempfile.TemporaryDirectory() as folder:
        found = Path(folder, "tests.xml")
        command = [sys.executable, "-m", "pytest", "-v", "-m", "gpu or not gpu", "-p", "no:cacheprovider"]
        bare = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
        ended = subprocess.run([*command, f"--junitxml={found}", *sizes.tests], check=False, env=bare)
        if not found.is_file():
            raise RuntimeError(f"pytest exited with status {ended.returncode} and without results.")
        for case in ET.parse(found).iter("testcase"):
            faults = [fault for fault in case if fault.tag in {"failure", "error", "skipped"}]
            emit({
                "test": case.get("name"), "outcome": faults[0].tag if faults else "passed",
                "seconds": float(case.get("time", 0)),
                "message": faults[0].get("message", "").partition("\n")[0] if faults else "",
            })  # fmt: skip


def options(sizes: Sizes, variants: list[str], precision: str) -> Namespace:
    """Return the options of the benchmark of updates."""
    given = ["--variants", *variants, "--precisions", precision, "--device", device().type]
    numbers = {
        "--rounds": sizes.rounds, "--updates": sizes.updates,
        "--channels": sizes.channels, "--entries": sizes.entries,
    }  # fmt: skip
    for name, value in numbers.items():
        given += [] if value is None else [name, str(value)]
    return train_step.parse(given)


def updates(sizes: Sizes, emit: Emit, _: float) -> None:
    """Emit the speed of each model's updates with plain layers, layers for GPUs, and recorded layers."""
    peaks = product_peaks(device())
    runs = [("bfloat16", tokens, preset) for tokens in sizes.tokens for preset in sizes.presets]
    runs += [("float32", sizes.tokens[0], preset) for preset in sizes.presets]
    for precision, tokens, preset in runs:
        chosen = options(sizes, ["plain", "fast", "recorded"], precision)
        for row in train_step.measure(preset, tokens, device(), chosen, peaks):
            emit(row)


def compiled(sizes: Sizes, emit: Emit, _: float) -> None:
    """Emit the speed of updates with and without torch.compile.

    The small model comes first because compiling the large one takes minutes and may not finish in time.
    """
    peaks = product_peaks(device())
    for preset in dict.fromkeys((sizes.presets[-1], sizes.presets[0])):
        chosen = options(sizes, ["fast", "recorded", "compiled"], "bfloat16")
        for row in train_step.measure(preset, sizes.tokens[0], device(), chosen, peaks):
            emit(row)


def operators(sizes: Sizes, emit: Emit, _: float) -> None:
    """Emit the device time of an update by operation, and its wall time."""
    here, preset, tokens = device(), sizes.presets[0], sizes.tokens[0]
    with tempfile.TemporaryDirectory() as folder:
        name = "recorded bfloat16"
        one = train_step.build(preset, Path(folder, name), name, tokens, sizes.entries, here, sizes.channels)
        one.updates(3)

        def some() -> float:
            one.updates(sizes.updates)
            return float(sizes.updates)

        emit({"operation": "an update by the clock", "times": 1, "ms": 1e3 / timed(some, here).clock})
        with profile(
            activities=[ProfilerActivity.CPU, *[ProfilerActivity.CUDA] * (here.type == "cuda")]
        ) as found:
            one.update()
    taken = device_times(found, here)
    emit(
        {"operation": "all operations", "times": sum(n for _, n, _ in taken), "ms": sum(t for *_, t in taken)}
    )
    for operation, times, milliseconds in taken[:25]:
        emit({"operation": operation[:90], "times": times, "ms": milliseconds})


def device_times(found: profile, here: torch.device) -> list[tuple[str, int, float]]:
    """Return name, count and milliseconds of a device's operations, longest first; on a GPU, of kernels."""
    events = found.key_averages()
    if here.type == "cuda":
        taken = [
            (e.key, e.count, e.self_device_time_total / 1e3) for e in events if e.device_type == GPU_EVENT
        ]
    else:
        taken = [(e.key, e.count, e.self_cpu_time_total / 1e3) for e in events]
    return sorted(taken, key=lambda one: -one[2])


def processes(sizes: Sizes, emit: Emit, _: float) -> None:
    """Emit the training speed of one process and of two, each with its own GPU."""
    for workers in (1, 2):
        if workers > max(1, torch.cuda.device_count()):
            emit({"processes": workers, "note": f"skipped: PyTorch sees {torch.cuda.device_count()} GPUs"})
            continue
        with tempfile.TemporaryDirectory() as folder:
            emit({"processes": workers, "tokens/s": parallel_speed(sizes, workers, Path(folder)), "note": ""})


def parallel_speed(sizes: Sizes, workers: int, folder: Path) -> float | None:
    """Return the target tokens per second of a training, including warm-up."""
    model, train, lengths = train_step.random_corpus(
        sizes.presets[0], folder, "bfloat16", sizes.tokens[0], workers * sizes.parallel_updates,
        sizes.entries, sizes.channels,
    )  # fmt: skip
    changes = {"batch_sentences": lengths, "workers": workers, "max_epochs": 1}
    paths = [folder / name for name in ("encoded", "vocabulary", "candidates", "work", "out")]
    train_model(model, train.model_copy(update=changes), 1, *paths)
    (cost,) = (folder / "work" / "costs").iterdir()
    (session,) = json.loads(cost.read_text(encoding="utf-8"))
    return float(session["target_tokens"] / session["training_seconds"])
