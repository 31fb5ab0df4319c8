"""However a request ends, the next one is answered, and the log has a line at most."""

import contextlib
import json
import random
import re
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest

from convs2s.package.translator import Translation, Translator
from convs2s.serve import batching
from convs2s.serve.pairs import LanguagePair
from tests.package.small_package import write_small_package
from tests.serve.running import running

TEXT = "ein Haus und"
FIELDS = {"q": TEXT, "source": "en", "target": "de"}
HTTP = httpx.Client(trust_env=False, timeout=30, limits=httpx.Limits(max_keepalive_connections=0))
Ending = Callable[[socket.socket], None]


class Gate:
    """A translator that waits until it is let through, and fails at lines that say so."""

    def __init__(self, pair: LanguagePair) -> None:
        self.translator = pair.translator
        self.facts = pair.translator.facts
        self.source = pair.translator.source
        self.target = pair.translator.target
        self.words = pair.translator.words
        self.split = pair.translator.split
        self.splits_sentences = pair.translator.splits_sentences
        self.open = threading.Event()
        self.batches = list[list[str]]()

    def translate_n_best(self, lines: list[str]) -> list[list[Translation]]:
        self.batches.append(lines)
        assert self.open.wait(20)
        if "bug" in lines:
            raise KeyError("bug")
        if "memory" in lines:
            raise MemoryError
        return self.translator.translate_n_best(lines)

    def wait_for_batches(self, number: int) -> None:
        end = time.monotonic() + 20
        while len(self.batches) < number:
            assert time.monotonic() < end
            time.sleep(0.005)


@pytest.fixture
def gate(pairs: list[LanguagePair]) -> Iterator[Gate]:
    gate = Gate(pairs[0])
    yield gate
    gate.open.set()  # the thread must not outlive the test


def gated(pairs: Sequence[LanguagePair], gate: Gate) -> list[LanguagePair]:
    return [replace(pairs[0], translator=gate)]  # type: ignore[arg-type]


def connect(address: str, buffer: int | None = None) -> socket.socket:
    """Return a connection to a server; with a small receive buffer, answers do not fit into the kernel's."""
    client = socket.socket()
    if buffer is not None:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
    client.settimeout(20)
    url = httpx.URL(address)
    client.connect((url.host, url.port))
    return client


def encode(
    path: str = "/translate", *, method: str = "POST", length: int | None = None, **fields: Any
) -> bytes:
    """Return a request; with another Content-Length than its body has if `length` is given."""
    body = json.dumps(FIELDS | fields).encode()
    lines = [
        f"{method} {path} HTTP/1.1",
        "Host: localhost",
        "Content-Type: application/json",
        f"Content-Length: {len(body) if length is None else length}",
    ]
    return "\r\n".join([*lines, "", ""]).encode() + body


def read_all(client: socket.socket) -> bytes:
    """Return what the server sends until it closes the connection, which must be within 20 seconds."""
    answer = b""
    while chunk := client.recv(1 << 16):
        answer += chunk
    return answer


def reset(client: socket.socket) -> None:
    """Close a connection as a process that dies does: with RST."""
    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def send_half_header(client: socket.socket) -> None:
    client.sendall(b"POST /translate HTTP/1.1\r\nHost: loc")


def send_half_body(client: socket.socket) -> None:
    client.sendall(encode(length=1000))


def send_half_chunk(client: socket.socket) -> None:
    client.sendall(
        b"POST /translate HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n20\r\nq=ein"
    )


def send_half_body_and_reset(client: socket.socket) -> None:
    send_half_body(client)
    reset(client)


def send_whole(client: socket.socket) -> None:
    client.sendall(encode())


def send_whole_and_reset(client: socket.socket) -> None:
    send_whole(client)
    reset(client)


def send_rubbish(client: socket.socket) -> None:
    client.sendall(b"\x16\x03\x01 this is no HTTP\r\n\r\n")


def send_two_lengths(client: socket.socket) -> None:
    client.sendall(b"POST /detect HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nq=ab")


def send_whole_and_rubbish(client: socket.socket) -> None:
    """After a request whose answer takes a while, something that is no request."""
    client.sendall(encode() + b"\0\r\n\r\n")


def send_rubbish_for_a_chunk(client: socket.socket) -> None:
    send_half_chunk(client)
    time.sleep(0.02)
    client.sendall(b"a" * 40 + b"\r\n")


def ask_and_send_rubbish_for_a_chunk(client: socket.socket) -> None:
    """Get an answer before the body has been sent, and go on with what is no chunk."""
    client.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n")
    assert client.recv(15) == b"HTTP/1.1 200 OK"
    client.sendall(b"no number\r\n")


def half_close(client: socket.socket) -> None:
    """End what is sent, with an answer to come and rubbish after the request."""
    send_whole_and_rubbish(client)
    client.shutdown(socket.SHUT_WR)


def send_too_much(client: socket.socket) -> None:
    client.sendall(encode(q="a" * (1 << 20)))


def offer_another_protocol(client: socket.socket) -> None:
    client.sendall(
        b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n"
        b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"
    )


@pytest.mark.parametrize(
    "ending",
    [
        send_half_header,
        send_half_body,
        send_half_chunk,
        send_half_body_and_reset,
        send_whole,
        send_whole_and_reset,
        send_rubbish,
        send_two_lengths,
        send_whole_and_rubbish,
        send_rubbish_for_a_chunk,
        ask_and_send_rubbish_for_a_chunk,
        half_close,
        send_too_much,
        offer_another_protocol,
    ],
)
def test_a_client_that_leaves_hurts_nobody(
    server: str, pairs: list[LanguagePair], caplog: pytest.LogCaptureFixture, ending: Ending
) -> None:
    """Of ten that leave at once, each costs the log a line at most; the next request gets its answer."""
    caplog.clear()
    for _ in range(10):
        with connect(server) as client:
            ending(client)
    answer = HTTP.post(f"{server}translate", json=FIELDS)
    assert answer.json() == {"translatedText": pairs[0].translator.translate(TEXT)}
    time.sleep(0.05)
    names = [record.name for record in caplog.records if record.name.startswith("uvicorn")]
    assert len(names) - names.count("uvicorn.access") <= 10  # which the command of another test may turn on
    check_log(caplog)


SENT = [
    encode(),
    encode(length=1000),
    encode(length=5),
    encode() * 3,
    encode("/n-best") + encode("/models", method="GET"),
    encode("/languages", method="GET", length=1000),
    encode("/page.js", method="GET"),
    encode().replace(b"Host:", b"Expect: 100-continue\r\nHost:"),
    encode().replace(b"HTTP/1.1", b"HTTP/1.0"),
    encode(length=1 << 40),
    encode() + b"\0rubbish\r\n\r\n",
    b"POST /detect HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nq=ein\r\n0\r\n\r\n",
    b"POST /detect HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nq=ein\r\nzz\r\n",
    b"GET /health HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    b"GET / HTTP/1.1\r\nHost: localhost\r\nA: " + b"a" * 100_000,
]
"""What clients send, whole or with the wrong length."""


def send_at_random(client: socket.socket, dice: random.Random) -> None:
    """Send a request or two, perhaps damaged, cut or in pieces; perhaps end it, read a part, or reset."""
    data = bytearray(b"".join(dice.choices(SENT, k=dice.randint(1, 2))))
    for _ in range(dice.choice([0, 0, 0, 1, 4])):
        data[dice.randrange(len(data))] = dice.randrange(256)
    if dice.random() < 0.25:
        del data[dice.randrange(len(data)) :]
    middle = dice.randrange(len(data) + 1)
    client.sendall(data[:middle])
    time.sleep(dice.choice([0, 0.005]))
    client.sendall(data[middle:])
    if dice.random() < 0.4:
        client.shutdown(socket.SHUT_WR)
    if dice.random() < 0.4:
        client.settimeout(0.05)
        client.recv(dice.choice([10, 1 << 16]))
    if dice.random() < 0.3:
        reset(client)


def test_no_request_leaves_a_traceback(
    server: str, pairs: list[LanguagePair], caplog: pytest.LogCaptureFixture
) -> None:
    """A stranger must not fill the log, nor hide a real fault in it: at most a line for each connection."""
    caplog.clear()
    connections = 300

    def send_some(first: int) -> None:
        for seed in range(first, connections, 10):
            with connect(server, 4096 if seed % 5 == 0 else None) as client, contextlib.suppress(OSError):
                send_at_random(client, random.Random(seed))

    with ThreadPoolExecutor(10) as pool:
        list(pool.map(send_some, range(10)))
    answer = HTTP.post(f"{server}translate", json=FIELDS)
    assert answer.json() == {"translatedText": pairs[0].translator.translate(TEXT)}
    check_log(caplog)
    lines = [record.getMessage() for record in caplog.records if record.levelname in ("WARNING", "ERROR")]
    assert set(lines) == {"Invalid HTTP request received."}
    assert len(lines) <= connections


def check_log(caplog: pytest.LogCaptureFixture) -> None:
    """No line of the log has a traceback, or several lines."""
    for record in caplog.records:
        assert record.exc_info is None and "\n" not in record.getMessage().strip(), record


def test_lines_of_a_client_that_has_left_are_not_translated(
    pairs: list[LanguagePair], gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever waits behind it is served, whether it left the queue or the batch that is being translated."""
    monkeypatch.setattr(batching, "CHECK_SECONDS", 0.01)
    with running(gated(pairs, gate)) as address:
        with connect(address) as translated:
            translated.sendall(encode(q="noch"))
            gate.wait_for_batches(1)
            with connect(address) as queued:
                queued.sendall(encode(q="eins"))
                time.sleep(0.05)
        with closing(connect(address)) as waiting:
            waiting.sendall(encode().replace(b"Host:", b"Connection: close\r\nHost:"))
            time.sleep(0.05)
            gate.open.set()
            text = pairs[0].translator.translate(TEXT)
            assert json.loads(read_all(waiting).partition(b"\r\n\r\n")[2]) == {"translatedText": text}
    assert gate.batches == [["noch"], [TEXT]]


@pytest.mark.parametrize("line", ["bug", "memory"])
def test_only_the_request_that_fails_gets_the_error(
    pairs: list[LanguagePair], gate: Gate, caplog: pytest.LogCaptureFixture, line: str
) -> None:
    """One bad text must not fail others that share its batch, or come later. The log has one traceback."""
    answers = dict[str, httpx.Response]()

    def send(address: str, text: str) -> None:
        answers[text] = HTTP.post(f"{address}translate", json=FIELDS | {"q": text})

    with running(gated(pairs, gate)) as address:
        threads = [threading.Thread(target=send, args=(address, text)) for text in ("noch", line, TEXT)]
        threads[0].start()
        gate.wait_for_batches(1)
        for thread in threads[1:]:
            thread.start()
        time.sleep(0.5)  # until both are in the queue
        gate.open.set()
        for thread in threads:
            thread.join()
        send(address, "Haus")
    assert sorted(map(len, gate.batches)) == [1, 1, 1, 1, 2], "they did not share a batch"
    assert answers.pop(line).json() == {"error": "The server has failed to answer; its log says why."}
    assert {text: answer.json()["translatedText"] for text, answer in answers.items()} == {
        text: pairs[0].translator.translate(text) for text in ("noch", TEXT, "Haus")
    }
    assert [record.levelname for record in caplog.records if record.exc_info] == ["ERROR"]


def ask_and_send_half_a_body(client: socket.socket) -> None:
    """Get an answer before the body has been sent, and go on sending."""
    client.sendall(encode("/languages", method="GET", length=1000))
    assert client.recv(15) == b"HTTP/1.1 200 OK"
    client.sendall(b"a")


@pytest.mark.parametrize(
    ("ending", "status"),
    [
        (lambda _: None, b""),
        (send_half_header, b""),
        (send_half_body, b"HTTP/1.1 408 Request Timeout"),
        (send_half_chunk, b"HTTP/1.1 408 Request Timeout"),
        (ask_and_send_half_a_body, None),
    ],
)
def test_a_client_that_does_not_go_on_is_left(
    server: str,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    ending: Ending,
    status: bytes | None,
) -> None:
    """A thousand idle clients would lock out others. One that sends a byte now and then is left as well."""
    monkeypatch.setattr("convs2s.serve.endings.IDLE_SECONDS", 0.3)
    monkeypatch.setattr("convs2s.serve.requests.READ_SECONDS", 0.3)
    begin = time.monotonic()
    with connect(server) as client:
        ending(client)
        answer = read_all(client)
    assert 0.25 < time.monotonic() - begin < 5
    if status is not None:
        assert answer[: len(status)] == status and bool(status) == bool(answer)
        assert (b"connection: close" in answer) == bool(status)
    caplog.clear()
    assert HTTP.get(f"{server}health").json() == {"status": "ok"}
    check_log(caplog)


def test_requests_that_take_longer_than_a_client_may_idle_are_answered(
    pairs: list[LanguagePair], gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The limits are for a client that keeps us waiting, not for one that waits."""
    monkeypatch.setattr("convs2s.serve.endings.IDLE_SECONDS", 0.2)
    monkeypatch.setattr("convs2s.serve.requests.READ_SECONDS", 0.2)
    with running(gated(pairs, gate)) as address, httpx.Client(trust_env=False) as client:
        timer = threading.Timer(0.6, gate.open.set)
        timer.start()
        for _ in range(2):  # on one connection
            assert client.post(f"{address}translate", json=FIELDS).status_code == 200


@pytest.fixture
def large_pairs(pairs: list[LanguagePair]) -> list[LanguagePair]:
    """Pairs of which /models says more than the kernel's buffers hold, 20 MB."""
    translator = pairs[0].translator
    assert translator.facts is not None
    facts = replace(translator.facts, examples=[("a" * 10_000, "")] * 2000)
    plain = Translator(translator.words, translator.source, translator.target, None, facts)
    return [replace(pairs[0], translator=plain)]


def ask_and_read_little(client: socket.socket) -> None:
    client.sendall(encode("/models", method="GET"))
    assert client.recv(15) == b"HTTP/1.1 200 OK"


def test_an_answer_that_is_not_read_is_dropped(
    large_pairs: list[LanguagePair], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Such a client would else hold its connection and its answer as long as it likes."""
    monkeypatch.setattr("convs2s.serve.endings.IDLE_SECONDS", 0.3)
    with running(large_pairs) as address, connect(address, 4096) as client:
        ask_and_read_little(client)
        time.sleep(1)
        assert HTTP.get(f"{address}health").status_code == 200
        with contextlib.suppress(ConnectionResetError):
            assert len(read_all(client)) < 20_000_000


def test_the_server_does_not_wait_for_a_client_that_does_not_read(large_pairs: list[LanguagePair]) -> None:
    """uvicorn counts an answer in a buffer as sent. The server must still end after its grace time."""
    with running(large_pairs, timeout_graceful_shutdown=1) as address:
        client = connect(address, 4096)
        ask_and_read_little(client)
        begin = time.monotonic()
    assert 1 <= time.monotonic() - begin < 3
    client.close()


@pytest.mark.parametrize(
    ("ending", "status"),
    [
        (lambda _: None, b""),
        (send_half_header, b""),
        (send_half_body, b"HTTP/1.1 503 Service Unavailable"),
        (send_half_chunk, b"HTTP/1.1 503 Service Unavailable"),
        (send_whole, b"HTTP/1.1 503 Service Unavailable"),
    ],
)
def test_the_server_ends_whatever_its_clients_do(
    pairs: list[LanguagePair], gate: Gate, caplog: pytest.LogCaptureFixture, ending: Ending, status: bytes
) -> None:
    """It waits no longer than its grace time. What it then cuts off is answered, without a traceback."""
    with running(gated(pairs, gate), timeout_graceful_shutdown=1) as address:
        client = connect(address)
        ending(client)
        if ending is send_whole:
            gate.wait_for_batches(1)
        time.sleep(0.3)  # until the server has read it
        begin = time.monotonic()
    assert time.monotonic() - begin < 3
    with closing(client):
        answer = read_all(client)
    assert answer[: len(status)] == status
    if status:
        assert json.loads(answer.partition(b"\r\n\r\n")[2]) == {"error": "The server is shutting down."}
    gate.open.set()
    time.sleep(0.05)
    check_log(caplog)


def test_running_requests_are_answered_before_the_server_ends(pairs: list[LanguagePair], gate: Gate) -> None:
    """Their clients get what they asked for, even from the queue; new connections are refused meanwhile."""
    with running(gated(pairs, gate)) as address:
        clients = [connect(address), connect(address)]
        for client, text in zip(clients, ("noch", TEXT), strict=True):
            client.sendall(encode(q=text))
            time.sleep(0.2)  # until the server has read it
        gate.wait_for_batches(1)
        timer = threading.Timer(0.5, gate.open.set)
        timer.start()
    with pytest.raises(ConnectionRefusedError):
        connect(address)
    for client, text in zip(clients, ("noch", TEXT), strict=True):
        with closing(client):
            answer = json.loads(read_all(client).partition(b"\r\n\r\n")[2])
        assert answer == {"translatedText": pairs[0].translator.translate(text)}


def send_much(client: socket.socket) -> None:
    """Send lines whose translation takes longer than the server waits."""
    client.sendall(encode(q=["Das ist ein Haus und noch eins ."] * 20_000))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("ending", "signals", "seconds", "status"),
    [
        (lambda _: None, (signal.SIGTERM,), 2, b""),
        (lambda _: None, (signal.SIGINT,), 2, b""),
        (send_half_header, (signal.SIGTERM,), 2, b""),
        (send_half_body, (signal.SIGTERM,), 10, b"HTTP/1.1 503 Service Unavailable"),
        (send_half_body, (signal.SIGTERM, signal.SIGTERM), 10, b"HTTP/1.1 503 Service Unavailable"),
        (send_half_body, (signal.SIGINT, signal.SIGINT), 2, b"HTTP/1.1 503 Service Unavailable"),
        (send_half_body, (signal.SIGTERM, signal.SIGINT), 2, b""),  # no time for an answer
        (send_much, (signal.SIGTERM,), 10, b"HTTP/1.1 503 Service Unavailable"),
        (send_much, (signal.SIGINT,), 10, b"HTTP/1.1 503 Service Unavailable"),
        (send_much, (signal.SIGINT, signal.SIGINT), 2, b"HTTP/1.1 503 Service Unavailable"),
    ],
)
def test_signals_end_the_process(
    tmp_path: Path, ending: Ending, signals: Sequence[signal.Signals], seconds: float, status: bytes
) -> None:
    """Docker kills a container after ten seconds. A running batch cannot be interrupted, only abandoned."""
    log = tmp_path / "log"
    folder = write_small_package(tmp_path / "model", languages=("en", "de"))
    command = [sys.executable, "-m", "convs2s.cli", "serve", "--model", str(folder), "--port", "0"]
    limits = ["--max-lines", "100000", "--max-characters", "1000000", "--threads", "1"]
    with log.open("w") as file:
        process = subprocess.Popen([*command, *limits], stderr=file)
    try:
        end = time.monotonic() + 60
        while not (address := re.search(r"http://\S+", log.read_text())):
            assert process.poll() is None and time.monotonic() < end, log.read_text()
            time.sleep(0.05)
        with connect(address[0]) as client:
            ending(client)
            time.sleep(0.5)
            begin = time.monotonic()
            for number in signals:
                process.send_signal(number)
                time.sleep(0.3)
            exit_status = process.wait(30)
            assert time.monotonic() - begin < seconds
            assert read_all(client)[: len(status)] == status
    finally:
        process.kill()
    assert exit_status == (-signal.SIGTERM if signal.SIGTERM in signals else 0)
    text = log.read_text()
    assert "Traceback" not in text, text
    assert len(text.splitlines()) <= 8
