"""Run the application until it is stopped."""

import asyncio
import socket
from pathlib import Path

import h11
import uvicorn
from fastapi import FastAPI
from uvicorn.protocols.http.h11_impl import H11Protocol


def serve(app: FastAPI, listening: socket.socket) -> None:
    """Serve on a socket until SIGINT or SIGTERM; requests in progress are finished."""
    make_server(app).run(sockets=[listening])


class TimedHttp(H11Protocol):
    """HTTP that closes connections that stop in the middle of a request, which uvicorn would keep forever.

    Attributes:
        seconds: how long it waits for the head of a request, and then for each further part of its body.
    """

    seconds = 30.0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Wait for a request."""
        super().connection_made(transport)
        self._late = self.loop.call_later(self.seconds, transport.close)

    def data_received(self, data: bytes) -> None:
        """Wait for the rest, if data does not complete a request."""
        before = self.conn.their_state
        super().data_received(data)
        state = self.conn.their_state
        if before is state is h11.IDLE and not self._late.cancelled():
            return  # the head is still incomplete, and its time runs on
        self._late.cancel()
        if state in (h11.IDLE, h11.SEND_BODY):
            self._late = self.loop.call_later(self.seconds, self.transport.close)


def make_server(app: FastAPI, log_level: str = "warning") -> uvicorn.Server:
    """Return a server for the application."""
    config = uvicorn.Config(
        app, http=TimedHttp, log_level=log_level, access_log=False, server_header=False,
        timeout_graceful_shutdown=10,
    )  # fmt: skip
    return uvicorn.Server(config)


def listen(host: str, port: int) -> socket.socket:
    """Return a listening socket; raise OSError, naming the address, if it cannot be used."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family)
    except OSError as error:
        raise OSError(
            f"cannot listen on {host} port {port} ({error.strerror or error}). Is another server running "
            "there? Choose another port with --port, or 0 for any free port."
        ) from error


def read_keys(path: Path) -> tuple[str, ...]:
    """Return the API keys in a file, one per line; raise ValueError if it has none."""
    keys = tuple(line.strip() for line in path.read_text(encoding="utf-8").splitlines() if line.strip())
    if not keys:
        raise ValueError(f"{path} is empty; expected an API key on each line.")
    return keys
