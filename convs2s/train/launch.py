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
LAUNCHER = "CONVS2S_LAUNCHER"  # variable with the number of the process that has started a worker
STOPPING = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT)


def launch(
    module: str, arguments: list[str], workers: int, nodes: int, rendezvous: str | None, name: str
) -> None:
    """Run `python -m module arguments` in several processes and wait until all have ended.

    torchrun's variables RANK, LOCAL_RANK and WORLD_SIZE say which is which. The processes are new Python
    programs, not copies of this one, so the calling program needs no `__main__` guard.

    Args:
        workers: processes on this machine, which share its cores.
        nodes: machines; each of them must make this call.
        rendezvous: host:port where the machines meet; None with one machine.
        name: shared by all machines that belong together, and by no others.

    Raises:
        ChildProcessError: if a process fails; the others are then stopped.
        KeyboardInterrupt: if this process is interrupted; all are then stopped.
    """
    config = LaunchConfig(
        min_nodes=nodes,
        max_nodes=nodes,
        nproc_per_node=workers,
        run_id=name,
        rdzv_backend="c10d",
        rdzv_endpoint=rendezvous or "localhost:0",
        max_restarts=0,
    )
    threads = max(1, len(os.sched_getaffinity(0)) // workers)
    with restored_environment(), restored_signal_handlers():
        os.environ.setdefault("OMP_NUM_THREADS", str(threads))
        os.environ[LAUNCHER] = str(os.getpid())
        # The same code in all processes, wherever this one has found it.
        os.environ["PYTHONPATH"] = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
        try:
            elastic_launch(config, sys.executable)("-u", "-m", module, *arguments)
        except ChildFailedError as error:
            rank, failure = error.get_first_failure()
            raise ChildProcessError(
                f"Worker {rank} of {workers * nodes} failed with status {failure.exitcode}. Its own message "
                "is above; fix its cause and run the same again, which resumes from the last checkpoint."
            ) from None
        except SignalException as error:
            if error.sigval == signal.SIGINT:
                raise KeyboardInterrupt from None
            raise


def end_with_launcher() -> None:
    """End this worker when the process that called `launch` has been killed.

    torchrun gives each worker a session of its own, so it survives what ends its launcher's group.
    """
    end_with_parent(int(os.environ[LAUNCHER]))


@contextlib.contextmanager
def restored_environment() -> Iterator[None]:
    """Undo all changes of environment variables at the end."""
    before = dict(os.environ)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


@contextlib.contextmanager
def restored_signal_handlers() -> Iterator[None]:
    """Undo the handlers that torchrun's agent sets and leaves, which would swallow a later Ctrl-C."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in STOPPING}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
