"""What starting an operation costs the host, and what the cost consists of.

If an update takes the host as long to queue as the GPU to finish, the host is the limit. The microseconds of
single calls show where its time goes: in Python, in PyTorch, in the driver, or in the system below, where a
system call takes 0.1 to 0.2 us, and many times as long under gVisor. A host that spends more wall than
processor time waits, for the driver or for a processor.
"""

import argparse
import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

import torch
from torch.profiler import ProfilerActivity, profile

from benchmarks.gpu_report.shared import device_seconds, output, part, query
from benchmarks.gpu_report.training import build_random, load_batch
from benchmarks.harness import Report, wait
from benchmarks.operations import count_operations
from benchmarks.synthetic import queue_next
from convs2s.base.parallel import cores
from convs2s.train.batch_update import finish_update

CALLS = 500  # fewer than the launches that a driver queues, about 1,000, after which the host waits
ROUNDS = 9
VARIABLES = (
    "CUDA_LAUNCH_BLOCKING",
    "CUDA_DEVICE_MAX_CONNECTIONS",
    "CUDA_MPS_PIPE_DIRECTORY",
    "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE",
    "CUDA_VISIBLE_DEVICES",
    "OMP_NUM_THREADS",
    "PYTORCH_ALLOC_CONF",
    "PYTORCH_CUDA_ALLOC_CONF",
)
RUNTIME = ("cudaLaunchKernel", "cudaLaunchKernelExC", "cuLaunchKernel", "cuLaunchKernelEx", "cudaMemcpyAsync",
           "cudaMemsetAsync", "cudaStreamSynchronize", "cudaEventRecord", "cudaMalloc")  # fmt: skip


def microseconds(work: Callable[[], object], device: torch.device, calls: int = CALLS) -> tuple[float, float]:
    """Return the host's wall and processor time for a call, the median of several rounds of calls."""
    rounds = []
    for _ in range(ROUNDS):
        wait(device)
        wall, processor = time.perf_counter(), time.process_time()
        for _ in range(calls):
            work()
        rounds.append(((time.perf_counter() - wall) / calls, (time.process_time() - processor) / calls))
    wall, processor = sorted(rounds)[ROUNDS // 2]
    return 1e6 * wall, 1e6 * processor


def list_calls(device: torch.device) -> Iterator[tuple[str, Callable[[], object], int]]:
    """Yield calls that an update consists of, from the cheapest on, and how many to make."""
    x, on_cpu = torch.zeros(1, device=device), torch.zeros(1)
    weight = torch.ones(1, device=device, requires_grad=True)
    pageable = torch.zeros(1024)
    yield "an empty call of Python", lambda: None, CALLS
    yield "a system call (getppid)", os.getppid, CALLS
    yield "waking another thread and waiting for it", ThreadSwitch().go, 50
    yield "an operation on the CPU", lambda: on_cpu.add_(1.0), CALLS
    yield "a view", lambda: x.view(1, 1), CALLS
    yield "memory for a tensor", lambda: torch.empty(1, device=device), CALLS
    yield "an operation", lambda: x.add_(1.0), CALLS
    yield "an operation whose gradient is wanted", lambda: weight * 2.0, CALLS
    if device.type == "cuda":
        pinned, event = torch.zeros(1024).pin_memory(), torch.cuda.Event()
        there = torch.zeros(1024, device=device)
        yield "a kernel that does nothing, without PyTorch's part", lambda: torch.cuda._sleep(0), CALLS
        yield "recording an event", event.record, CALLS
        yield "a copy from pinned memory, 4 KiB", lambda: there.copy_(pinned, non_blocking=True), CALLS
        yield "a copy from other memory, 4 KiB", lambda: there.copy_(pageable, non_blocking=True), 50
        yield "waiting for an idle GPU", torch.cuda.synchronize, 50
        yield "reading a number", x.item, 50


class ThreadSwitch:
    """Another thread, as backward has one, that is woken and answers."""

    def __init__(self) -> None:
        self.call, self.answer = threading.Semaphore(0), threading.Semaphore(0)
        threading.Thread(target=self.work, daemon=True).start()

    def work(self) -> None:
        """Answer each call."""
        while True:
            self.call.acquire()
            self.answer.release()

    def go(self) -> None:
        """Call, and wait for the answer."""
        self.call.release()
        self.answer.acquire()


def measure_calls(device: torch.device, report: Report) -> None:
    """Measure single calls."""
    report.table(("call", "wall", "processor"), "Single calls, microseconds of the host")
    for name, work, calls in list_calls(device):
        wall, processor = microseconds(work, device, calls)
        report.add(call=name, wall_us=wall, processor_us=processor)
    if device.type == "cuda":
        x = torch.zeros(1, device=device)
        gpu = 1e6 * device_seconds(lambda: x.add_(1.0), device, CALLS)
        report.add(call="the GPU's own time for an operation, in a CUDA graph", wall_us=gpu, processor_us="")


def measure_updates(
    presets: Sequence[str], tokens: int, device: torch.device, toy: bool, report: Report
) -> None:
    """Measure how long updates take to queue, and to be done."""
    report.table(
        ("preset", "operations", "to queue", "of processor", "until done", "us an operation", "the limit is"),
        f"Updates of {tokens:,} tokens in bfloat16, milliseconds",
    )
    for preset in presets:
        with build_random(preset, tokens, device, toy) as training:
            losses, loaded = training.losses(0.0).train(), load_batch(training)
            for _ in range(3):
                queue_next(training, losses, loaded)
            with count_operations() as operations:
                queue_next(training, losses, loaded)
            rounds = []
            for _ in range(ROUNDS):
                wait(device)
                start, processor = time.perf_counter(), time.process_time()
                queued = queue_next(training, losses, loaded)
                to_queue, of_processor = time.perf_counter() - start, time.process_time() - processor
                finish_update(training, queued, loaded, training.learning_rate())
                rounds.append((time.perf_counter() - start, to_queue, of_processor))
        median_round = sorted(rounds)[ROUNDS // 2]
        done, to_queue, of_processor = median_round
        launches = operations.launches.total()
        report.add(
            preset=preset, operations=launches, queue_ms=1e3 * to_queue, processor_ms=1e3 * of_processor,
            done_ms=1e3 * done, us_per_operation=1e6 * to_queue / launches,
            limit="the host" if done < 1.1 * to_queue else "the device",
        )  # fmt: skip


def profile_update(preset: str, tokens: int, device: torch.device, toy: bool, report: Report) -> None:
    """Profile an update: calls of the driver, the longest operations, and how busy the GPU is."""
    kinds = [ProfilerActivity.CPU] + ([ProfilerActivity.CUDA] if device.type == "cuda" else [])
    with build_random(preset, tokens, device, toy) as training:
        losses, loaded = training.losses(0.0).train(), load_batch(training)
        for _ in range(3):
            queue_next(training, losses, loaded)
        wait(device)
        with profile(activities=kinds) as profiled:
            start = time.perf_counter()
            queue_next(training, losses, loaded)
            wait(device)
            seconds = time.perf_counter() - start
    events = profiled.key_averages()
    report.table(
        ("call", "times", "us each, on the host", "ms, on the GPU"),
        f"An update of {preset} under PyTorch's profiler, which slows the host: {1e3 * seconds:.1f} ms",
    )
    longest = sorted(events, key=lambda event: -event.self_cpu_time_total)[:12]
    of_runtime = [event for event in events if event.key in RUNTIME and event not in longest]
    for event in of_runtime + longest:
        report.add(
            call=event.key, times=event.count, host_us=event.self_cpu_time_total / event.count,
            gpu_ms=event.self_device_time_total / 1e3,
        )  # fmt: skip
    busy = sum(event.self_device_time_total for event in events) / 1e6
    if busy:
        report.add(call="all", times="", host_us="", gpu_ms=1e3 * busy)
        print(f"\nThe GPU computes {100 * busy / seconds:.0f} % of the time.")


def list_hints(device: torch.device, report: Report) -> None:
    """List what may slow the host down and can be seen from here."""
    report.table(("what", "value"), "The machine")
    hints: dict[str, object] = {
        "kernel (gVisor calls itself 4.4.0)": read_short("/proc/version"),
        "kernel's log": output(["dmesg"]),
        "processors of this process, load": f"{cores()}, {os.getloadavg()}",
        "processor time that a container may use": read_short("/sys/fs/cgroup/cpu.max"),
        "variables": {name: os.environ[name] for name in VARIABLES if name in os.environ},
    }
    if device.type == "cuda":
        mps = os.environ.get("CUDA_MPS_PIPE_DIRECTORY", "/tmp/nvidia-mps")
        hints |= {
            "MPS server's folder exists": Path(mps).exists(),
            "compute mode, MIG": query("compute_mode,mig.mode.current"),
            "PCIe generation, width": query("pcie.link.gen.current,pcie.link.width.current"),
            "power now, limit": query("power.draw,power.limit"),
            "confidential computing": output(["nvidia-smi", "conf-compute", "--get-cc-feature"]),
        }
    for name, value in hints.items():
        report.add(what=name, value=str(value))


def read_short(path: str) -> str:
    """Return a short file of the system, or that there is none."""
    try:
        return Path(path).read_text(encoding="utf-8").strip()
    except OSError:
        return "unknown"


def measure(options: argparse.Namespace, device: torch.device, report: Report) -> None:
    """Measure each table on its own."""
    presets = ["tatoeba-en-de"] if options.toy else ["multi30k-en-de", "wmt14-en-de-paper"]
    tokens = 60 if options.toy else 4000
    report.attempt(partial(measure_calls, device, report))
    report.attempt(partial(measure_updates, presets, tokens, device, options.toy, report))
    report.attempt(partial(list_hints, device, report))
    for preset in presets:
        report.attempt(partial(profile_update, preset, tokens, device, options.toy, report))


main = part(__doc__, measure)

if __name__ == "__main__":
    main()
