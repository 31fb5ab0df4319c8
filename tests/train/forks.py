"""Workers like those that torchrun starts, but forked from this process, which saves their imports."""

import contextlib
import importlib
import multiprocessing
import os
import sys
from collections.abc import Callable, Iterator
from multiprocessing.context import ForkProcess

import torch.distributed as dist

from convs2s.config.train import RunSection, TrainParams, count_processes
from convs2s.train.running.launch import LAUNCHER


@contextlib.contextmanager
def forked(count: int, work: Callable[[], object]) -> Iterator[list[ForkProcess]]:
    """Start workers that call `work` in torchrun's environment; kill any that remain at the end."""
    store = dist.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
    context = multiprocessing.get_context("fork")
    workers = [context.Process(target=run, args=(rank, count, store.port, work)) for rank in range(count)]
    for worker in workers:
        worker.start()
    try:
        yield workers
    finally:
        for worker in workers:
            worker.kill()
            worker.join()


def run(rank: int, count: int, port: int, work: Callable[[], object]) -> None:
    """Run as a worker."""
    os.environ |= {
        "RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": str(count), "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port), "TORCHELASTIC_USE_AGENT_STORE": "True", "CUDA_VISIBLE_DEVICES": "",
        LAUNCHER: str(os.getppid()),
    }  # fmt: skip
    work()


def launch_forks(module: str, arguments: list[str], params: TrainParams, run_section: RunSection) -> None:
    """Replace `launch` on one machine: run `python -m module arguments` in each worker.

    This avoids runpy, which would leave a .pyc with shape checks under the name of a plain one, and processes
    without shape checks cannot import that.
    """

    def work() -> None:
        sys.argv = [module, *arguments]
        importlib.import_module(module).main()

    with forked(count_processes(params, run_section), work) as processes:
        for process in processes:
            process.join()
            assert process.exitcode == 0
