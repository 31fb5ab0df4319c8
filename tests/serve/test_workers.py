"""Several server processes on one port: `convs2s serve --workers`."""

import contextlib
import errno
import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TypeVar

import pytest

from convs2s.serve.workers import FairListener, Supervisor
from tests.package.small_package import write_small_package

Value = TypeVar("Value")
THREADS = {**os.environ, "OMP_NUM_THREADS": "2"}  # while the parent loads the model, too
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads processes in /proc")
TEXT = "ein Haus und"
SLOW_TEXT = "\n".join(["Das ist ein Haus und noch eins ."] * 20_000)  # takes longer than the server waits


class Served:
    """A running server.

    Attributes:
        process: the one that was started.
        port: of 127.0.0.1.
    """

    def __init__(self, process: "subprocess.Popen[bytes]", log: Path) -> None:
        self.process = process
        self._log = log
        address = wait_for(lambda: re.search(r"http://127.0.0.1:(\d+)", self.log), process)
        self.port = int(address[1])

    @property
    def log(self) -> str:
        return self._log.read_text(encoding="utf-8")

    def workers(self) -> set[int]:
        """Return the ids of the worker processes."""
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
        return set(map(int, children.read_text().split()))

    def connect(self) -> http.client.HTTPConnection:
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)

    def ask(self, text: str = TEXT) -> bytes:
        """Return the answer to a request on a connection of its own."""
        with closing(self.connect()) as connection:
            return ask(connection, text)


def send(connection: http.client.HTTPConnection, text: str) -> None:
    body = json.dumps({"q": text, "source": "en", "target": "de", "alternatives": 2})
    connection.request("POST", "/translate", body, {"Content-Type": "application/json"})


def ask(connection: http.client.HTTPConnection, text: str = TEXT) -> bytes:
    send(connection, text)
    response = connection.getresponse()
    answer = response.read()
    assert response.status == http.client.OK, answer
    return answer


def wait_for(look: Callable[[], Value | None], process: "subprocess.Popen[bytes]") -> Value:
    """Return what `look` returns as soon as it is true."""
    end = time.monotonic() + 60
    while not (value := look()):
        assert process.poll() is None and time.monotonic() < end
        time.sleep(0.02)
    return value


def is_alive(process: int) -> bool:
    with contextlib.suppress(FileNotFoundError):
        return ") Z " not in Path(f"/proc/{process}/stat").read_text()
    return False


@contextmanager
def serving(folder: Path, workers: int, *options: str) -> Iterator[Served]:
    command = [sys.executable, "-m", "convs2s.cli", "serve", "--model", str(folder), "--port", "0"]
    log = folder.parent / "log"
    with log.open("w") as file:
        process = subprocess.Popen(
            [*command, "--workers", str(workers), *options], stderr=file, start_new_session=True
        )
    try:
        server = Served(process, log)
        wait_for(lambda: server.log.count("Started server process") == workers, process)
        yield server
    finally:
        process.kill()
        process.wait()


def connections_of(worker: int, port: int) -> int:
    """Return how many connections to the port a process has."""
    rows = [line.split() for line in Path(f"/proc/{worker}/net/tcp").read_text().splitlines()[1:]]
    established = {f"socket:[{row[9]}]" for row in rows if row[3] == "01" and row[1].endswith(f":{port:04X}")}
    files = set[str]()
    for link in Path(f"/proc/{worker}/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):
            files.add(str(link.readlink()))
    return len(files & established)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_small_package(tmp_path_factory.mktemp("workers"), languages=("en", "de"))


def test_workers_answer_as_one_process_and_share_the_connections(folder: Path) -> None:
    """asyncio would accept all that wait at once. A worker that is killed is replaced; others go on."""
    with serving(folder, 2, "--threads", "2") as server:
        workers = server.workers()
        assert len(workers) == 2
        with contextlib.ExitStack() as stack:
            clients = [stack.enter_context(closing(server.connect())) for _ in range(8)]
            for client in clients:
                client.connect()
            for client in clients:
                send(client, TEXT)
            answers = {client.getresponse().read() for client in clients}
            assert len(answers) == 1
            split = sorted(connections_of(worker, server.port) for worker in workers)
            assert sum(split) == 8 and split[0] >= 2
        killed = min(workers)
        os.kill(killed, signal.SIGKILL)
        assert server.ask() in answers
        wait_for(lambda: len(server.workers() - {killed}) == 2, server.process)
        assert f"convs2s: warning: worker {killed} was ended by signal 9 (Killed); another" in server.log
        [left] = server.workers() & workers
        os.kill(left, signal.SIGSTOP)  # so that the new one answers
        assert server.ask() in answers
        os.kill(left, signal.SIGCONT)
        server.process.terminate()
        assert server.process.wait(5) == -signal.SIGTERM
        assert "Traceback" not in server.log
    with serving(folder, 1) as server:
        assert {server.ask()} == answers
        assert server.workers() == set()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kill", "signals", "grace", "status"),
    [
        (os.kill, (signal.SIGTERM,), True, -signal.SIGTERM),
        (os.kill, (signal.SIGINT,), True, 0),
        (os.killpg, (signal.SIGINT,), True, 0),  # as a terminal does
        (os.kill, (signal.SIGINT, signal.SIGINT), False, 0),
        (os.killpg, (signal.SIGINT, signal.SIGINT), False, 0),
        (os.kill, (signal.SIGTERM, signal.SIGINT), False, -signal.SIGTERM),
    ],
)
def test_signals_end_all_processes_as_they_end_one(
    folder: Path,
    kill: Callable[[int, int], None],
    signals: tuple[signal.Signals, ...],
    grace: bool,
    status: int,
) -> None:
    """The first one leaves a running request its 8 s; others are refused. A second Ctrl-C ends it."""
    limits = ["--max-lines", "100000", "--max-characters", "1000000"]
    with serving(folder, 2, *limits) as server, closing(server.connect()) as client:
        workers = server.workers()
        send(client, SLOW_TEXT)
        time.sleep(0.5)
        begin = time.monotonic()
        for number in signals:
            kill(server.process.pid, number)
            time.sleep(0.3)
            with pytest.raises(ConnectionRefusedError):
                server.connect().connect()
        assert server.process.wait(20) == status
        seconds = time.monotonic() - begin
        assert 7 < seconds < 10 if grace else seconds < 2
        assert not any(map(is_alive, workers))
        if grace:
            assert client.getresponse().status == http.client.SERVICE_UNAVAILABLE
        assert "Traceback" not in server.log


def test_no_worker_outlives_the_parent(folder: Path) -> None:
    """Killed, it can end nobody; a worker that goes on would keep the port."""
    with serving(folder, 2) as server:
        workers = server.workers()
        server.ask()
        server.process.kill()
        end = time.monotonic() + 5
        while any(map(is_alive, workers)):
            assert time.monotonic() < end
            time.sleep(0.02)


@pytest.mark.slow
def test_workers_that_die_at_once_end_the_server(folder: Path) -> None:
    """Another start would fail as well: the error is shown, not a loop."""
    with serving(folder, 2) as server:
        other = min(server.workers())
        for _ in range(3):
            [worker] = wait_for(lambda: server.workers() - {other}, server.process)
            os.kill(worker, signal.SIGKILL)
            wait_for(lambda worker=worker: not is_alive(worker), server.process)  # type: ignore[misc]
        assert server.process.wait(5) == 2
        assert "convs2s: error: 3 workers in a row died within 5 s of their start" in server.log
        assert not is_alive(other)


@pytest.mark.slow
def test_a_port_that_is_taken_is_an_error(folder: Path) -> None:
    """The status and the message are uvicorn's, as for one process."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        options = ["--model", str(folder), "--port", port, "--workers", "2"]
        command = [sys.executable, "-m", "convs2s.cli", "serve", *options]
        ended = subprocess.run(command, check=False, capture_output=True, text=True)
    assert ended.returncode == 3
    assert "address already in use" in ended.stderr.lower()


def test_answers_are_sent_without_delay() -> None:
    """asyncio turns off Nagle's algorithm, which holds back the end of an answer, for such connections."""
    bound = socket.socket()
    bound.bind(("127.0.0.1", 0))
    with FairListener(bound, memoryview(bytearray(2))) as listener:
        listener.listen()
        with socket.create_connection(listener.getsockname()), listener.accept()[0] as connection:
            assert connection.proto == socket.IPPROTO_TCP
        assert list(listener.accepted) == [1, 0]


def test_others_go_on_if_no_worker_can_be_started(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Such as when memory has run out, for which one of them was killed."""

    def fail(_: object) -> None:
        raise BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable")

    supervisor = Supervisor(lambda _: time.sleep(60), socket.socket(), 2)
    for place in range(2):
        supervisor._start(place)
    monkeypatch.setattr("multiprocessing.context.ForkProcess.start", fail)
    messages = list[str]()
    for worker in list(supervisor._workers):
        worker.kill()
        messages.append(supervisor._replace(worker))
        assert signal.pthread_sigmask(signal.SIG_BLOCK, []) == set()  # signals still arrive
    assert messages == ["", "no worker is left."]
    assert capsys.readouterr().err.count("no other one can be started: [Errno 11]") == 2
