"""A local web server that breaks off, refuses and counts requests, as each test sets it up."""

import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest


@dataclass
class Site:
    """The server's files and settings, and the requests it has received."""

    address: str
    files: dict[str, bytes] = field(default_factory=dict)
    breaks: list[int] = field(default_factory=list)
    """Bytes after which the next responses end early, one number per response."""
    statuses: list[int] = field(default_factory=list)
    """Error statuses of the next responses, one per response."""
    redirects: dict[str, str] = field(default_factory=dict)
    """Targets of redirects, by path without the leading slash."""
    lengths: bool = True
    """Whether responses have a Content-Length."""
    asked: list[str] = field(default_factory=list)
    """Path of each request."""

    def url(self, name: str) -> str:
        return f"{self.address}/{name}"


@pytest.fixture
def site(monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    monkeypatch.setattr("time.sleep", lambda _: None)  # pooch's pauses

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            name = self.path.removeprefix("/").partition("?")[0]
            served.asked.append(name)
            if name in served.redirects:
                self.send_response(302)
                self.send_header("Location", served.redirects[name])
                self.end_headers()
                return
            content = served.files.get(name)
            if served.statuses or content is None:
                self.send_error(served.statuses.pop(0) if served.statuses else 404)
                return
            self.send_response(200)
            if served.lengths:
                self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content[: served.breaks.pop(0)] if served.breaks else content)

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    served = Site(f"http://127.0.0.1:{server.server_address[1]}")
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield served
    server.shutdown()
    thread.join()
    server.server_close()
