"""Start several processes that train together: torchrun, called from Python."""

import contextlib
import os
import signal
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

from torch.distributed.elastic.multiprocessing import SignalException
from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
from torch.distributed.launcher.api import LaunchConfig, elastic_launch

from convs2s.processes import end_with_parent

ROOT = Path(__file__).parent.parent.parent
LAUNCHER = "CONVS2S_LAUNCHER"  # environment variable with the id of the process that started a worker
STOPPING = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1)
INTERRUPTED = [128 + number for number in STOPPING]  # exit status of a process that has saved and ended


def launch(
    module: str, arguments: list[str], workers: int, nodes: int, rendezvous: str | None, name: str
) -> None:
    """Run `python -m module arguments` in several processes and wait until all have exited.

    Each process learns its place from torchrun's variables RANK, LOCAL_RANK and WORLD_SIZE. The processes are
    new Python interpreters, not copies of this one, so the calling program needs no `__main__` guard.

    Args:
        workers: processes on this machine, which share its cores.
        nodes: number of machines; each of them must make this call.
        rendezvous: host:port where the machines meet; None with one machine.
        name: the same on all machines of this training, and different for every other training.

    Raises:
        ChildProcessError: if a process fails; the others are stopped first.
        KeyboardInterrupt: if this process or another is interrupted, by Ctrl-C or one of STOPPING; all
            processes are stopped first, in the same way, so that they can save.
    """
    config = LaunchConfig(
        min_nodes=nodes,
        max_nodes=nodes,
        nproc_per_node=workers,
        run_id=name,
        rdzv_backend="c10d",
        rdzv_endpoint=rendezvous or "localhost:0",
        max_restarts=0,
        signals_to_handle=",".join(number.name for number in STOPPING),
    )
    threads = max(1, len(os.sched_getaffinity(0)) // workers)
    with restored_environment(), restored_signal_handlers():
        os.environ.setdefault("OMP_NUM_THREADS", str(threads))
        os.environ[LAUNCHER] = str(os.getpid())
        # Make all processes import the same code as this one.
        os.environ["PYTHONPATH"] = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
        try:
            elastic_launch(config, sys.executable)("-u", "-m", module, *arguments)
        except ChildFailedError as error:
            rank, failure = error.get_first_failure()
            if failure.exitcode in INTERRUPTED:
                raise KeyboardInterrupt from None
            raise ChildProcessError(
                f"Worker {rank} of {workers * nodes} failed with status {failure.exitcode}. Its own message "
                "is above; fix the cause and run the same command again to resume from the last checkpoint."
            ) from None
        except SignalException:
            raise KeyboardInterrupt from None


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
