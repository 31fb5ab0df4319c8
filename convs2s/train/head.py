"""Train on several machines by one command: the head starts a program on each, and again if one is lost.

`convs2s.train.node` is that program, and describes the store in which the head and the nodes meet.
"""

import contextlib
import json
import os
import shlex
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

from torch.distributed import DistError

from convs2s.base.messages import inflect
from convs2s.config.run import RunSection
from convs2s.config.train import TrainParams
from convs2s.train.follow import defer_signals
from convs2s.train.launch import own_code
from convs2s.train.node import (
    BLAME,
    DONE,
    FAILED,
    INTERRUPTED,
    POLL,
    Node,
    connect,
    describe_this,
    first_line,
    say,
)
from convs2s.train.work_folder import hold

GATHERING = 40  # seconds between the first node and the last
SILENCE = 30.0  # seconds without a sign of life, after which a node counts as lost
ENDING = 50.0  # seconds in which nodes save and end; torchrun's agent kills its workers after 30
GRACE = 10.0  # seconds in which the launcher ends after its nodes


class LostNodeError(ChildProcessError):
    """A node has died or cannot be reached, which need not happen again."""


def train_on_nodes(
    module: str, arguments: list[str], params: TrainParams, run: RunSection, work: Path, name: str
) -> None:
    """Run `python -m module arguments` in `params.workers` processes on each of `params.nodes` machines.

    Args:
        work: the work folder, whose lock the writer holds.
        name: of the training.

    Raises:
        OSError: if the launcher cannot be run, or the nodes do not meet.
        ValueError: if they do not fit each other.
        ChildProcessError: if a worker fails, or nodes are lost more than `run.restarts` times.
        KeyboardInterrupt, SystemExit: after a signal to end, once the nodes have saved.
    """
    for left in reversed(range(run.restarts + 1)):
        try:
            Head(params, run).run(module, arguments, name)
            return
        except LostNodeError as error:
            if not left:
                raise
            say(f"{error} All start again, from the last checkpoint; restarts left after this: {left - 1}.")
        with hold(work):  # until the last process that may write there has ended
            pass


class Head:
    """One start of all nodes."""

    def __init__(self, params: TrainParams, run: RunSection) -> None:
        self.workers, self.count, self.launcher = params.workers, params.nodes, run.launcher or ""
        self.expected = inflect(self.count, "node")
        host, _, port = (run.rendezvous or socket.gethostname()).partition(":")
        try:
            self.store = connect(f"{host}:{port or 0}", is_head=True)
        except (DistError, ValueError) as error:
            raise OSError(
                f"run.rendezvous: {socket.gethostname()} cannot listen at {host}:{port or 'any port'}: "
                f"{first_line(error)}. Expected a name of this machine that the other nodes know."
            ) from error
        self.address = f"{host}:{self.store.port}"

    def run(self, module: str, arguments: list[str], name: str) -> None:
        """Start the nodes, say what to run, and wait until all have ended; see `train_on_nodes`."""
        program = [sys.executable, "-m", "convs2s.train.node", self.address]
        signals: list[int] = []
        try:
            # In its own session, as many a launcher would kill all nodes on Ctrl-C.
            process = subprocess.Popen(
                [*shlex.split(self.launcher), *program],
                env=os.environ | {"PYTHONPATH": own_code()},
                stdin=subprocess.DEVNULL,
                start_new_session=True,
            )
        except OSError as error:
            raise OSError(f"run.launcher: {self.launcher} cannot be started: {error}.") from error
        try:
            with defer_signals(signals):
                nodes = self.gather(process, signals)
                if not signals:
                    plan = {"module": module, "arguments": arguments, "name": name, "ranks": rank(nodes)}
                    self.store.set("plan", json.dumps(plan | {"workers": self.workers}))
                    self.watch(process, signals)
        finally:
            self.end(process)
        self.judge(signals)

    def gather(self, process: subprocess.Popen[bytes], signals: list[int]) -> list[Node]:
        """Return all nodes, by arrival, once they have come; fewer after a signal.

        Raises:
            LostNodeError: if the launcher ends.
            TimeoutError: if some nodes come, but not all.
        """
        said, deadline = -1, float("inf")  # a launcher may have to wait for free machines
        while (found := self.store.add("arrivals", 0)) < self.count and not signals:
            come = f"found {', '.join(str(self.read(i)) for i in range(found)) or 'none'}"
            if process.poll() is not None:
                raise LostNodeError(
                    f"run.launcher: expected {self.expected} at {self.address}, {come}, then it ended with "
                    f"status {process.returncode}; messages are above."
                )
            if found and said < 1:
                deadline = time.monotonic() + GATHERING
            if time.monotonic() > deadline:
                raise TimeoutError(
                    f"train.nodes: expected {self.expected} at {self.address}, {come} in {GATHERING} s. Does "
                    "run.launcher start this many, and can all of them connect?"
                )
            if found != said:
                limit = f", up to {GATHERING} s" if found else ""
                say(f"waiting at {self.address} for {self.count - found} of {self.expected}{limit}; {come}.")
                said = found
            time.sleep(POLL)
        return [self.read(i) for i in range(min(found, self.count))]

    def read(self, number: int) -> Node:
        """Return a node by its number."""
        return Node(**json.loads(self.store.get(f"node/{number}")))

    def watch(self, process: subprocess.Popen[bytes], signals: list[int]) -> None:
        """Wait until all nodes have ended, one has failed or is lost, or a signal comes.

        Raises:
            LostNodeError: if the launcher ends before a node.
        """
        alive: dict[int, tuple[int, float]] = {}  # counts and when they last changed
        while not signals:
            ended = process.poll() is not None
            for i in range(self.store.add("arrivals", 0)):
                count = self.store.add(f"alive/{i}", 0)
                if count != alive.get(i, (-1, 0.0))[0]:
                    alive[i] = count, time.monotonic()
            words = [self.word(i)[0] for i in alive]
            silent = [
                time.monotonic() - alive[i][1] > SILENCE for i, word in enumerate(words) if word is None
            ]
            if any(words) or any(silent) or not any(word is None for word in words[: self.count]):
                return
            if ended:
                missing = [str(self.read(i)) for i, word in enumerate(words) if word is None]
                raise LostNodeError(
                    f"run.launcher ended with status {process.returncode} before {', '.join(missing)}."
                )
            time.sleep(POLL)

    def word(self, number: int) -> tuple[int | None, str]:
        """Return how a node ended: its exit status, or None if there is none, and a message."""
        if not self.store.check([f"word/{number}"]):
            return None, "It was killed, or cannot be reached."
        status, message = json.loads(self.store.get(f"word/{number}"))
        return status, message

    def end(self, process: subprocess.Popen[bytes]) -> None:
        """Make all nodes save and end, and wait for those that are alive; then end the launcher."""
        self.store.set("end", "")
        deadline = time.monotonic() + ENDING
        while (before := self.list_counts()) and time.monotonic() < deadline:
            time.sleep(4 * POLL)
            if self.list_counts() == before:
                break
        for number in (0, signal.SIGTERM, signal.SIGKILL):
            with contextlib.suppress(ProcessLookupError, subprocess.TimeoutExpired):
                os.killpg(process.pid, number)
                process.wait(GRACE)

    def list_counts(self) -> list[int]:
        """Return the signs of life of nodes that have not ended."""
        numbers = range(self.store.add("arrivals", 0))
        return [self.store.add(f"alive/{i}", 0) for i in numbers if self.word(i)[0] is None]

    def judge(self, signals: list[int]) -> None:
        """Return if all nodes have done their work; see `train_on_nodes`."""
        words = [self.word(i) for i in range(self.store.add("arrivals", 0))]
        if [status for status, _ in words[: self.count]] == [DONE] * self.count:
            return
        if signals:
            raise KeyboardInterrupt if signals[0] == signal.SIGINT else SystemExit(128 + signals[0])
        number = min(range(len(words)), key=lambda i: BLAME.index(words[i][0]))
        status, message = words[number]
        if status == INTERRUPTED:
            raise KeyboardInterrupt
        error = ChildProcessError if status == FAILED else LostNodeError
        raise error(f"Node {self.read(number)}: {message}")


def rank(nodes: list[Node]) -> list[int]:
    """Return the rank of each node; the one in this folder writes, as its data/ is the stage's.

    Raises:
        ValueError: if the nodes do not fit each other.
    """
    own = describe_this()
    order = sorted(range(len(nodes)), key=lambda i: (str(nodes[i]) != str(own), str(nodes[i])))
    first = nodes[order[0]]
    for node in nodes:
        for what, wanted, got, where in (
            ("code of convs2s", own.code, node.code, own),
            ("version of PyTorch", first.torch, node.torch, first),
            ("number of GPUs", first.gpus, node.gpus, first),
        ):
            if wanted != got:
                raise ValueError(
                    f"train.nodes: expected {what} {wanted}, as on {where}, found {got} on {node}."
                )
    return [order.index(i) for i in range(len(nodes))]
