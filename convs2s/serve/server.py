"""Run the application until it is stopped."""

import socket
from pathlib import Path

import uvicorn
from fastapi import FastAPI


def serve(app: FastAPI, listening: socket.socket) -> None:
    """Serve on a socket until SIGINT or SIGTERM; requests in progress are finished."""
    config = uvicorn.Config(
        app, log_level="warning", access_log=False, server_header=False, timeout_graceful_shutdown=10
    )
    uvicorn.Server(config).run(sockets=[listening])


def listen(host: str, port: int) -> socket.socket:
    """Return a listening socket.

    Raises:
        OSError: naming the address, if it cannot be used.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family)
    except OSError as error:
        raise OSError(
            f"cannot listen on {host} port {port} ({error.strerror or error}). Is another server running "
            "there? Choose another port with --port, or 0 for any free port."
        ) from error


def read_keys(path: Path) -> tuple[str, ...]:
    """Return the API keys in a file, one per line.

    Raises:
        FileNotFoundError: if there is no such file.
        ValueError: if it has no keys.
    """
    keys = tuple(line.strip() for line in path.read_text(encoding="utf-8").splitlines() if line.strip())
    if not keys:
        raise ValueError(f"{path} is empty; wanted an API key on each line.")
    return keys
