"""Start the processes of this machine that train together: torchrun, called from Python."""

import contextlib
import os
import signal
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

from torch.distributed import TCPStore
from torch.distributed.elastic.multiprocessing import SignalException
from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
from torch.distributed.elastic.rendezvous import (
    RendezvousInfo,
    RendezvousParameters,
    rendezvous_handler_registry,
)
from torch.distributed.elastic.rendezvous.static_tcp_rendezvous import StaticTCPRendezvous
from torch.distributed.launcher.api import LaunchConfig, elastic_launch

from convs2s.base.processes import end_with_parent

ROOT = Path(__file__).parent.parent.parent
LAUNCHER = "CONVS2S_LAUNCHER"  # environment variable with the id of the process that started a worker
STOPPING = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1)
MEETING = 50  # seconds in which the nodes of a training must find each other
INTERRUPTED = [128 + number for number in STOPPING]  # exit status of a process that has saved and ended


class WorkerError(ChildProcessError):
    """A worker has failed; `status` is its exit status, or minus the number of the signal that killed it."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


class HeadRendezvous(StaticTCPRendezvous):
    """Nodes with given ranks meet in a store that another process holds; otherwise, node 0 would hold it."""

    def get_backend(self) -> str:
        """Return the name under which this is registered."""
        return "head"

    def next_rendezvous(self) -> RendezvousInfo:
        """Return the place of this node and where its workers meet the others."""
        self._store = TCPStore(self.master_addr, self.master_port, is_master=False, timeout=self.timeout)
        return super().next_rendezvous()


def meet_at_head(params: RendezvousParameters) -> HeadRendezvous:
    """Return the rendezvous of a node."""
    host, port = params.endpoint.rsplit(":", 1)
    return HeadRendezvous(host, int(port), params.config["rank"], params.max_nodes, params.run_id, MEETING)


rendezvous_handler_registry.register("head", meet_at_head)


def launch(
    module: str,
    arguments: list[str],
    workers: int,
    name: str,
    node: int = 0,
    nodes: int = 1,
    head: str | None = None,
) -> None:
    """Run `python -m module arguments` in several processes and wait until all have exited.

    Each process learns its place from torchrun's variables RANK, LOCAL_RANK and WORLD_SIZE. The processes are
    new Python interpreters, not copies of this one, so the calling program needs no `__main__` guard.

    Args:
        workers: processes on this machine, which share its cores.
        name: of the training.
        node: rank of this machine; each machine makes this call.
        head: host:port of the store in which the machines meet; None with one machine.

    Raises:
        WorkerError: if a process fails; the others are stopped first.
        KeyboardInterrupt: if this process or another is interrupted, by Ctrl-C or one of STOPPING; all
            processes are stopped first, in the same way, so that they can save.
    """
    config = LaunchConfig(
        min_nodes=nodes,
        max_nodes=nodes,
        nproc_per_node=workers,
        run_id=name,
        rdzv_backend="head" if head else "c10d",
        rdzv_endpoint=head or "localhost:0",
        rdzv_configs={"rank": node} if head else {},
        max_restarts=0,
        signals_to_handle=",".join(number.name for number in STOPPING),
    )
    threads = max(1, len(os.sched_getaffinity(0)) // workers)
    with restored_environment(), restored_signal_handlers():
        os.environ.setdefault("OMP_NUM_THREADS", str(threads))
        os.environ[LAUNCHER] = str(os.getpid())
        os.environ["PYTHONPATH"] = own_code()
        try:
            elastic_launch(config, sys.executable)("-u", "-m", module, *arguments)
        except ChildFailedError as error:
            rank, failure = error.get_first_failure()
            if failure.exitcode in INTERRUPTED:
                raise KeyboardInterrupt from None
            raise WorkerError(
                f"Worker {rank} of {workers * nodes} failed with status {failure.exitcode}. Its own message "
                "is above; fix the cause and run the same command again to resume from the last checkpoint.",
                failure.exitcode,
            ) from None
        except SignalException:
            raise KeyboardInterrupt from None


def own_code() -> str:
    """Return PYTHONPATH for processes that are to import the same code as this one."""
    return os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])


def end_with_launcher() -> None:
    """End this worker when the process that called `launch` has been killed.

    torchrun gives each worker its own session, so a signal to the launcher's process group does not reach it.
    """
    end_with_parent(int(os.environ[LAUNCHER]))


@contextlib.contextmanager
def restored_environment() -> Iterator[None]:
    """Undo all changes to environment variables on exit."""
    before = dict(os.environ)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


@contextlib.contextmanager
def restored_signal_handlers() -> Iterator[None]:
    """On exit, undo the handlers that torchrun's agent installs; left behind, they would swallow Ctrl-C."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in STOPPING}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
