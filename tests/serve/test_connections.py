"""Connections: those that stop in the middle of a request are closed, slow ones are not."""

import json
import socket
import threading
import time
from collections.abc import Iterator
from typing import Any
from urllib.request import urlopen

import pytest

from convs2s.serve.pairs import Pair, Pairs
from convs2s.serve.server import TimedHttp
from tests.serve.running import running

BODY = json.dumps({"q": "ein Haus", "source": "en", "target": "de"}).encode()
LINES = (b"POST /translate HTTP/1.1", b"Host: localhost", b"Content-Type: application/json",
         b"Content-Length: %d" % len(BODY), b"", b"")  # fmt: skip
REQUEST = b"\r\n".join(LINES) + BODY
HEALTH = b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n"


@pytest.fixture(scope="module")
def port(pairs: Pairs) -> Iterator[int]:
    """The port of a server that waits half a second for the rest of a request."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(TimedHttp, "seconds", 0.5)
        with running(pairs) as address:
            yield int(address.strip("/").rpartition(":")[2])


def connect(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), timeout=10)


def test_a_connection_without_the_rest_of_a_request_is_closed(port: int) -> None:
    """Each would hold a file descriptor forever, and a process has a limited number of them."""
    beginnings = {
        b"": b"",
        b"POST /tra": b"",
        REQUEST[:-1]: b"",
        HEALTH[:-2] + LINES[3] + b"\r\n\r\n": b"HTTP/1.1 200 OK",  # answered without its body
        HEALTH + b"GET /he": b"HTTP/1.1 200 OK",
    }
    begin = time.monotonic()
    silent = [connect(port) for _ in beginnings]
    for connection, sent in zip(silent, beginnings, strict=True):
        connection.sendall(sent[: len(HEALTH)])
        time.sleep(0.03)  # or else uvicorn itself closes the last connection, after 5 s
        connection.sendall(sent[len(HEALTH) :])
    answers = [b"".join(iter(lambda: connection.recv(4096), b"")) for connection in silent]  # noqa: B023
    assert 0.4 < time.monotonic() - begin < 4
    assert [answer[:15] for answer in answers] == list(beginnings.values())
    metrics = urlopen(f"http://127.0.0.1:{port}/metrics").read()
    assert b'{path="/translate",status="499"} 1.0' in metrics  # 500 would be logged with a traceback


def test_the_head_of_a_request_must_arrive_in_time(port: int) -> None:
    """Otherwise a byte now and then would keep the connection open."""
    with connect(port) as connection, pytest.raises(OSError, match=r"Broken pipe|reset"):
        for byte in REQUEST:
            connection.sendall(bytes([byte]))
            time.sleep(0.05)


def test_a_slow_upload_and_a_slow_translation_are_answered(
    port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both take longer than the server waits for a silent client."""
    plain = Pair.translate

    def slow(self: Pair, lines: list[str]) -> Any:
        time.sleep(0.7)
        return plain(self, lines)

    monkeypatch.setattr(Pair, "translate", slow)
    with connect(port) as connection:
        connection.sendall(REQUEST[:-3])
        for byte in REQUEST[-3:]:
            time.sleep(0.2)
            connection.sendall(bytes([byte]))
        assert connection.recv(4096).startswith(b"HTTP/1.1 200 OK")


def test_a_late_answer_to_a_client_that_has_gone_is_dropped(
    pairs: Pairs, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its request ends at once, though its line is still being translated; the server then goes on."""
    plain, entered, free = Pair.translate, threading.Event(), threading.Event()

    def wait(self: Pair, lines: list[str]) -> Any:
        entered.set()
        assert free.wait(10)
        return plain(self, lines)

    monkeypatch.setattr(Pair, "translate", wait)
    with running(pairs) as address:
        port = int(address.strip("/").rpartition(":")[2])
        with connect(port) as gone:
            gone.sendall(REQUEST)
            assert entered.wait(10)
        end = time.monotonic() + 10
        while b'{path="/translate",status="499"} 1.0' not in urlopen(f"{address}metrics").read():
            assert time.monotonic() < end
        free.set()
        with connect(port) as connection:
            connection.sendall(REQUEST)
            assert connection.recv(4096).startswith(b"HTTP/1.1 200 OK")
