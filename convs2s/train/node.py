"""A machine of a training on several: the program that `run.launcher` starts once on each of them.

    head  the process of the stage (`convs2s.train.head`): holds the store in which all others meet
    node  `python -m convs2s.train.node HOST:PORT`, on each machine: starts its workers

    arrivals, node/I  in the store: how many nodes have come, and what the I-th is
    plan              the head's answer: the nodes' ranks, and what to run
    alive/I           counts up for as long as a node runs
    word/I            how it has ended: its exit status and a message
    end               all nodes are to save and end

A node also saves and ends when its head is gone.
"""

import contextlib
import dataclasses
import hashlib
import json
import os
import signal
import socket
import sys
import threading
import time
from datetime import timedelta
from pathlib import Path
from typing import NoReturn

import torch
from torch.distributed import DistError, TCPStore

from convs2s.base.messages import TRAINING_MEMORY, inflect, report_errors
from convs2s.train.distributed import LostWorkerError
from convs2s.train.launch import MEETING, ROOT, WorkerError, launch

POLL = 0.5  # seconds
DONE, FAILED, LOST, KILLED, INTERRUPTED = 0, 1, LostWorkerError.exit_status, 137, 130  # exit status of a node
BLAME = FAILED, None, KILLED, LOST, INTERRUPTED, DONE  # from cause to effect; None if there is none


@dataclasses.dataclass(frozen=True)
class Node:
    """A machine that takes part, and what must be the same on all of them."""

    host: str
    folder: str
    code: str  # digest of this library's source
    torch: str  # version
    gpus: int

    def __str__(self) -> str:
        return f"{self.host} in {self.folder}"


def describe_this() -> Node:
    """Return what this machine is."""
    code = hashlib.sha256()
    for path in sorted((ROOT / "convs2s").rglob("*.py")):
        code.update(path.read_bytes())
    version, gpus = str(torch.__version__), torch.cuda.device_count()
    return Node(socket.gethostname(), str(Path.cwd()), code.hexdigest()[:12], version, gpus)


def take_part(address: str) -> NoReturn:
    """Start this node's workers when the head says so, and exit when they have ended.

    Raises:
        ConnectionError: if there is no head.
    """
    own = describe_this()
    say(f"{own} waits at {address} for the other nodes.")
    try:
        store = connect(address)
        number = store.add("arrivals", 1) - 1
        store.set(f"node/{number}", json.dumps(dataclasses.asdict(own)))
        threading.Thread(target=follow_head, args=(address, number), daemon=True).start()
        plan = json.loads(store.get("plan"))
    except DistError as error:
        raise ConnectionError(
            f"expected the head of a training at {address}, found none in {MEETING} s ({first_line(error)}). "
            "Does a firewall block it? run.rendezvous can name another address or port."
        ) from error
    ranks, status, message = plan["ranks"], DONE, ""
    try:
        if number >= len(ranks):
            raise WorkerError(
                f"Expected {inflect(len(ranks), 'node')}, but run.launcher starts more.", FAILED
            )
        head = {"node": ranks[number], "nodes": len(ranks), "head": address}
        launch(plan["module"], plan["arguments"], plan["workers"], plan["name"], **head)
    except KeyboardInterrupt:
        status = INTERRUPTED
    except WorkerError as error:
        status = KILLED if error.status < 0 else LOST if error.status == LOST else FAILED
        message = str(error)
    with contextlib.suppress(DistError):
        store.set(f"word/{number}", json.dumps([status, message]))
    sys.exit(status)


def follow_head(address: str, number: int) -> None:
    """Give signs of life; end this process, in the way that saves, once the head says so or is gone."""
    with contextlib.suppress(DistError):
        store = connect(address)
        while not store.check(["end"]):
            store.add(f"alive/{number}", 1)
            time.sleep(POLL)
    os.kill(os.getpid(), signal.SIGTERM)


def connect(address: str, *, is_head: bool = False) -> TCPStore:
    """Return the store at host:port, which the head holds.

    Raises:
        DistError: if it cannot be reached in time.
    """
    host, port = address.rsplit(":", 1)
    return TCPStore(
        host, int(port), is_master=is_head, wait_for_workers=False, timeout=timedelta(seconds=MEETING)
    )


def first_line(error: Exception) -> str:
    """Return an error's message without PyTorch's traces."""
    return (str(error).splitlines() or [type(error).__name__])[0].rstrip(".")


def say(text: str) -> None:
    """Show a message on how the nodes meet."""
    print(f"train: {text}", file=sys.stderr, flush=True)


def main() -> None:
    """Take part as a node; the command line has the head's address."""
    with report_errors(f"train, node {socket.gethostname()}", TRAINING_MEMORY, "The training resumes."):
        take_part(sys.argv[1])


if __name__ == "__main__":
    main()
