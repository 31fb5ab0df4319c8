"""Server processes that share a port and the memory of the models, and the process that supervises them.

uvicorn's own supervisor starts processes that load the models anew, and ends with status 0 after SIGTERM.
"""

import gc
import logging
import mmap
import multiprocessing
import os
import signal
import socket
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from multiprocessing.connection import wait
from multiprocessing.process import BaseProcess
from typing import Any

import uvicorn
from uvicorn.config import STARTUP_FAILURE

from convs2s.base.messages import warn
from convs2s.base.parallel import end_with_parent
from convs2s.serve.pairs import LanguagePair

EARLY_SECONDS = 5
"""A worker that dies within this time of its start would probably do so again."""
MOST_EARLY_DEATHS = 3
"""Of a worker and of those that replace it, in a row; the server then ends."""
HANDLERS: dict[signal.Signals, Any] = {
    signal.SIGINT: signal.default_int_handler,
    signal.SIGTERM: signal.SIG_DFL,
}
"""The signals that end a server, and how a process handles them when it starts."""
YIELD_SECONDS = 0.001
"""How long a worker's event loop waits, so that another worker can accept a connection before it."""
Serve = Callable[[list[socket.socket]], None]
"""Serves on sockets until a signal ends it."""


def check_workers(pairs: Sequence[LanguagePair], workers: int) -> None:
    """Raise ValueError if a model is on a GPU, which a forked process cannot use, or this is not Linux."""
    if sys.platform != "linux":  # elsewhere, workers do not end with a server that is killed
        raise ValueError(f"--workers {workers}: several workers need Linux. Use one.")
    for pair in pairs:
        device = pair.translator.words.device
        if device.type != "cpu":
            raise ValueError(
                f"--workers {workers}: the model of {pair} is on {device}, which forked processes cannot "
                "use. Use --device cpu, or one process; for several GPUs, start a server for each."
            )


def bind(config: uvicorn.Config) -> socket.socket:
    """Listen on the address, print it, and return the socket; as a single server does, exit if that fails.

    uvicorn's `bind_socket` prints the address before clients can connect.
    """
    is_ipv6 = ":" in config.host
    log = logging.getLogger("uvicorn.error")
    try:
        listener = socket.create_server(
            (config.host, config.port), family=socket.AF_INET6 if is_ipv6 else socket.AF_INET
        )
    except OSError as error:
        log.error(error)
        sys.exit(STARTUP_FAILURE)
    host = f"[{config.host}]" if is_ipv6 else config.host
    log.info("Uvicorn running on http://%s:%d (Press CTRL+C to quit)", host, listener.getsockname()[1])
    return listener


class FairListener(socket.socket):
    """A socket on which several workers listen, each of which gets about as many connections.

    asyncio would accept all that wait at once, and of idle workers the kernel wakes some sooner than others.

    Args:
        listener: the socket that this one replaces.
        accepted: how many connections each worker has accepted, in shared memory.
    """

    def __init__(self, listener: socket.socket, accepted: memoryview) -> None:
        # asyncio turns Nagle's algorithm off only if the protocol is given; an answer would wait for 40 ms.
        super().__init__(listener.family, listener.type, socket.IPPROTO_TCP, listener.detach())
        self.accepted = accepted
        self.worker = 0

    def accept(self) -> tuple[socket.socket, Any]:
        """Accept a connection; a worker that has had more than another lets that one come first if it can."""
        if self.accepted[self.worker] > min(self.accepted):
            time.sleep(YIELD_SECONDS)
        connection = super().accept()
        self.accepted[self.worker] += 1
        return connection


@dataclass(frozen=True)
class Start:
    """The start of a worker.

    Attributes:
        place: of the worker among all; that of the one it replaces.
        time: in seconds.
        early_deaths: of those that it replaces, in a row.
    """

    place: int
    time: float
    early_deaths: int


class Supervisor:
    """Keeps workers running until a signal ends them; a signal to this process is passed on to each of them.

    Args:
        serve: what a worker does.
        listener: of the server.
        number: of workers.
    """

    def __init__(self, serve: Serve, listener: socket.socket, number: int) -> None:
        self._serve = serve
        self._listener = FairListener(listener, memoryview(mmap.mmap(-1, 8 * number)).cast("Q"))
        self._workers: dict[BaseProcess, Start] = {}
        self._passed_on = list[int]()
        # A signal that a thread of PyTorch's gets interrupts no call, but then there is a byte to read here.
        self._signals, self._writer = socket.socketpair()

    def run(self) -> None:
        """Serve until a signal; end as a single server would after the same signals.

        Raises:
            ChildProcessError: if a worker died soon after its start, and so did those that replaced it.
        """
        gc.freeze()  # scanning shared objects would copy them
        self._writer.setblocking(False)
        signal.set_wakeup_fd(self._writer.fileno())
        for name in HANDLERS:
            signal.signal(name, lambda *_: None)
        for place in range(len(self._listener.accepted)):
            self._start(place)
        failure = ""
        while self._workers:
            ready = wait([self._signals, *(worker.sentinel for worker in self._workers)])
            if self._signals in ready:
                for number in self._signals.recv(64):
                    self._end(number)
            for worker in [worker for worker in self._workers if worker.sentinel in ready]:
                failure = self._replace(worker) or failure
        signal.set_wakeup_fd(-1)
        for name, handler in HANDLERS.items():
            signal.signal(name, handler)
        if failure:
            raise ChildProcessError(failure)
        if signal.SIGTERM in self._passed_on:
            signal.raise_signal(signal.SIGTERM)  # the first process of a container outlives it

    def _start(self, place: int, early_deaths: int = 0) -> None:
        """Start a worker, which gets no signal before it can handle it."""
        self._listener.worker = place
        arguments = os.getpid(), self._serve, self._listener
        worker = multiprocessing.get_context("fork").Process(target=work, args=arguments, daemon=True)
        signal.pthread_sigmask(signal.SIG_BLOCK, HANDLERS)
        try:
            worker.start()
        finally:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, HANDLERS)
        self._workers[worker] = Start(place, time.monotonic(), early_deaths)

    def _end(self, number: int) -> None:
        """End the workers by a signal; a second one, if it is SIGINT, ends them at once."""
        self._listener.close()  # so that clients are refused
        self._passed_on.append(number)
        for worker in self._workers:
            if worker.pid is not None and worker.exitcode is None:
                os.kill(worker.pid, number)

    def _replace(self, worker: BaseProcess) -> str:
        """Start another worker for one that has died, unless the server is to end.

        Returns:
            Why the server fails, if it does.
        """
        worker.join()
        start = self._workers.pop(worker)
        if self._passed_on:
            return ""
        code = worker.exitcode or 0
        by_signal = f"was ended by signal {-code} ({signal.strsignal(-code)})"
        how = by_signal if code < 0 else f"ended with status {code}"
        early_deaths = start.early_deaths + 1 if time.monotonic() - start.time < EARLY_SECONDS else 0
        if early_deaths < MOST_EARLY_DEATHS:
            try:
                self._start(start.place, early_deaths)
            except OSError as error:  # too little memory, or too many processes
                warn("convs2s", f"worker {worker.pid} {how}, and no other one can be started: {error}")
                return "" if self._workers else "no worker is left."
            warn("convs2s", f"worker {worker.pid} {how}; another one takes its place.")
            return ""
        self._end(signal.SIGTERM)
        return (
            f"{early_deaths} workers in a row died within {EARLY_SECONDS} s of their start; the last one "
            f"{how}. Did memory run out? Free some, or use fewer --workers."
        )


def work(parent: int, serve: Serve, listener: socket.socket) -> None:
    """Do the work of a worker."""
    os.setpgid(0, 0)  # Ctrl-C reaches the parent alone, which passes it on; twice would end it at once
    end_with_parent(parent)
    signal.set_wakeup_fd(-1)
    for name in HANDLERS:  # until uvicorn handles them
        signal.signal(name, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, HANDLERS)
    serve([listener])
