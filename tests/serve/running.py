"""A real server in a thread of the test process."""

import socket
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import uvicorn

from convs2s.package.folder import Settings, write_package
from convs2s.serve.app import create_app
from convs2s.serve.batching import Batcher
from convs2s.serve.pairs import Pair, load_pairs
from convs2s.serve.requests import RequestReader
from tests.decode.parrot import TOKENIZE, TRANSLATE
from tests.package.small_package import FACTS, write_parts


def write_pair(folder: Path, source: str, target: str, phase: float = 0.0) -> Path:
    """Write a tiny model folder for a language pair."""
    settings = Settings((source, target), TOKENIZE, TRANSLATE, replace=True)
    facts = replace(FACTS, name=f"small {source}-{target}", languages=(source, target))
    write_package(folder / "package", *write_parts(folder, phase), settings, "# card\n", facts=facts)
    return folder / "package"


def load_two(folder: Path) -> list[Pair]:
    """Load tiny models for en-de and fr-de."""
    folders = [
        write_pair(folder / "1", "en", "de", phase=1.0),
        write_pair(folder / "2", "fr", "de", phase=2.0),
    ]
    return load_pairs(folders, "cpu", beam_size=4, replace=None)


@contextmanager
def running(pairs: Sequence[Pair], keys: tuple[str, ...] = ()) -> Iterator[str]:
    """Run a server; yield its address, with a slash at the end."""
    app = create_app(pairs, RequestReader(keys, 10_000, 200), Batcher(64, threads=None))
    server = uvicorn.Server(uvicorn.Config(app, log_level="critical"))
    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=server.run, args=([listening],))
        thread.start()
        try:
            # The socket is already listening: the first request waits until the server accepts it.
            yield f"http://127.0.0.1:{listening.getsockname()[1]}/"
        finally:
            server.should_exit = True
            thread.join()
