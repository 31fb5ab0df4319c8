"""Workers as torchrun starts them, but as forks of this process, whose imports are paid for."""

import contextlib
import importlib
import multiprocessing
import os
import sys
from collections.abc import Callable, Iterator
from multiprocessing.context import ForkProcess

import torch.distributed as dist

from convs2s.train.launch import LAUNCHER


@contextlib.contextmanager
def forked(count: int, work: Callable[[], object]) -> Iterator[list[ForkProcess]]:
    """Start workers that call `work` in the environment that torchrun gives; kill those left at the end."""
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
    """Be a worker."""
    os.environ |= {
        "RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": str(count), "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port), "TORCHELASTIC_USE_AGENT_STORE": "True", "CUDA_VISIBLE_DEVICES": "",
        LAUNCHER: str(os.getppid()),
    }  # fmt: skip
    work()


def launch_forks(module: str, arguments: list[str], workers: int, *_: object) -> None:
    """Take the place of `launch` on one machine: run `python -m module arguments` in each worker.

    Not by runpy: it would leave a .pyc with checked shapes under the name of a plain one, and processes that
    check nothing cannot import that.
    """

    def work() -> None:
        sys.argv = [module, *arguments]
        importlib.import_module(module).main()

    with forked(workers, work) as processes:
        for process in processes:
            process.join()
            assert process.exitcode == 0
