"""A real server in a thread of the test process."""

import socket
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import uvicorn

from convs2s.serve.app import create_app
from convs2s.serve.batching import Batcher
from convs2s.serve.endings import UVICORN, Server
from convs2s.serve.pairs import LanguagePair
from convs2s.serve.requests import RequestReader


@contextmanager
def running(pairs: Sequence[LanguagePair], keys: tuple[str, ...] = (), **settings: Any) -> Iterator[str]:
    """Run a server until the end of the block; yield its address, with a slash at the end.

    Args:
        settings: changes to those of uvicorn.
    """
    app = create_app(pairs, RequestReader(keys, 10_000, 200), Batcher(64, threads=None))
    # Without a configuration of uvicorn's own, pytest gets its log.
    server = Server(uvicorn.Config(app, log_config=None, **(UVICORN | settings)))
    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=server.run, args=([listening],))
        thread.start()
        try:
            # The socket is already listening: the first request waits until the server accepts it.
            yield f"http://127.0.0.1:{listening.getsockname()[1]}/"
        finally:
            server.should_exit = True
            thread.join()
