"""Start the processes that train together: torchrun, on this machine or on each that `run.launcher` names.

The process of the stage calls `launch`. It holds the store in which the machines meet, so that torchrun ends
them all when it is gone. `python -m convs2s.train.running.launch`, on each machine, is torchrun with short
messages.
"""

import contextlib
import os
import shlex
import signal
import socket
import subprocess
import sys
import time
from datetime import timedelta
from pathlib import Path

from torch.distributed import DistError, TCPStore
from torch.distributed import run as torchrun
from torch.distributed.elastic.multiprocessing import SignalException
from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
from torch.distributed.elastic.rendezvous import RendezvousError

from convs2s.base.messages import report_errors
from convs2s.base.parallel import cores
from convs2s.config.train import RunSection, TrainParams, count_processes
from convs2s.train.running.follow import ENDING, defer_signals, end_by_signal

ROOT = Path(__file__).parents[3]
LAUNCHER = "CONVS2S_LAUNCHER"  # environment variable with the id of the process that started a worker
SIGNALS = (signal.SIGINT, signal.SIGQUIT, *ENDING)
INTERRUPTED = [status for number in SIGNALS for status in (128 + number, -number)]
MEETING = 60  # seconds in which all machines must come, from the first one on
GRACE = 50.0  # seconds in which all save and end; torchrun kills its workers after 30
POLL = 0.1


def launch(module: str, arguments: list[str], params: TrainParams, run: RunSection) -> None:
    """Run `python -m module arguments` in several processes and wait until all have ended.

    Each process learns its place from torchrun's variables RANK, LOCAL_RANK and WORLD_SIZE. If one fails,
    torchrun ends the others and starts all again, up to `run.restarts` times.

    Args:
        arguments: without characters that a shell reads, as a launcher may pass them through one.
    """
    processes = count_processes(params, run)
    own_name = socket.gethostname() if run.launcher else "localhost"
    host, _, port = (run.rendezvous or own_name).partition(":")
    try:
        store = TCPStore(
            host, int(port or 0), is_master=True, wait_for_workers=False, timeout=timedelta(seconds=MEETING)
        )
    except (DistError, ValueError) as error:
        raise OSError(
            f"run.rendezvous: cannot listen on {host}:{port or 'any port'}: {str(error).splitlines()[0]}. "
            "Expected a name of this machine that the other nodes know."
        ) from error
    command = [
        *shlex.split(run.launcher or ""), sys.executable, "-m", "convs2s.train.running.launch",
        f"--nnodes={params.nodes}", f"--nproc-per-node={processes}", f"--max-restarts={run.restarts}",
        "--rdzv-backend=c10d", f"--rdzv-endpoint={host}:{store.port}",
        f"--rdzv-conf=is_host=0,join_timeout={MEETING}",
        f"--signals-to-handle={','.join(number.name for number in SIGNALS)}",
        *([] if run.launcher else ["--local-addr=localhost"]), "-m", module, *arguments,
    ]  # fmt: skip
    threads = max(1, cores() // processes)
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    if os.environ.get("PYTHONPATH"):
        environment["PYTHONPATH"] += os.pathsep + os.environ["PYTHONPATH"]
    environment.setdefault("OMP_NUM_THREADS", str(threads))
    # In its own session, as many a launcher would kill all nodes on Ctrl-C.
    process = subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, start_new_session=True)
    signals: list[int] = []
    try:
        with defer_signals(signals):
            while process.poll() is None and not signals:
                time.sleep(POLL)
    finally:
        end_workers(process)
    if signals or process.returncode in INTERRUPTED:
        end_by_signal(signals)
    if process.returncode:
        raise ChildProcessError(
            f"The workers ended with status {process.returncode}; messages are above. Fix the cause and run "
            "the same command again to resume from the last checkpoint."
        )


def end_workers(process: subprocess.Popen[bytes]) -> None:
    """Make all workers save and end."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError, subprocess.TimeoutExpired):
            if process.poll() is None:
                os.killpg(process.pid, number)
            process.wait(GRACE)


def main() -> None:
    """Run torchrun; a failure becomes one line."""
    os.environ[LAUNCHER] = str(os.getpid())
    # A store for each start: in a shared one, nodes find old addresses if they count restarts differently.
    os.environ["TORCH_DISABLE_SHARE_RDZV_TCP_STORE"] = "1"
    with report_errors(
        f"train on {socket.gethostname()}", "", "The training resumes from its last checkpoint."
    ):
        try:
            torchrun.main()
        except SignalException as error:
            sys.exit(128 + error.sigval)
        except ChildFailedError as error:
            rank, failure = error.get_first_failure()
            status = failure.exitcode
            print(f"train: worker {rank} failed with status {status}.", file=sys.stderr, flush=True)
            sys.exit(status if status > 0 else 128 - status)
        except RendezvousError as error:
            raise ConnectionError(
                f"expected all train.nodes within {MEETING} s: {str(error) or 'some did not come'}. Does "
                "run.launcher start this many, and can all of them reach run.rendezvous?"
            ) from error


if __name__ == "__main__":
    main()
