"""A local web server that breaks off, refuses and counts requests, as each test sets it up."""

import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from convs2s.text.sources import transfer


@dataclass
class Site:
    """The server's files and settings, and the requests it has received."""

    address: str
    files: dict[str, bytes] = field(default_factory=dict)
    ranges: bool = True
    breaks: list[int] = field(default_factory=list)
    """Bytes after which the next responses end early, one number per response."""
    statuses: list[int] = field(default_factory=list)
    """Error statuses of the next responses, one per response."""
    redirects: dict[str, str] = field(default_factory=dict)
    """Targets of redirects, by path without the leading slash."""
    lengths: bool = True
    """Whether responses have a Content-Length."""
    ranges_from: int = 0
    """Added to the first byte of a range, as by a faulty server."""
    asked: list[tuple[str, str | None]] = field(default_factory=list)
    """Path and Range header of each request."""

    def url(self, name: str) -> str:
        return f"{self.address}/{name}"


@pytest.fixture
def site() -> Iterator[Site]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            wanted = self.headers.get("Range")
            served.asked.append((self.path, wanted))
            target = served.redirects.get(self.path.removeprefix("/"))
            if target is not None:
                self.send_response(302)
                self.send_header("Location", target)
                self.end_headers()
                return
            content = served.files.get(self.path.removeprefix("/"))
            if served.statuses or content is None:
                self.send_error(served.statuses.pop(0) if served.statuses else 404)
                return
            begin = int(wanted.removeprefix("bytes=").rstrip("-")) if wanted and served.ranges else 0
            if begin >= len(content) > 0:
                self.send_error(416)
                return
            self.send_response(206 if begin else 200)
            if served.lengths:
                self.send_header("Content-Length", str(len(content) - begin))
            if begin:
                begin += served.ranges_from
                self.send_header("Content-Range", f"bytes {begin}-{len(content) - 1}/{len(content)}")
            self.end_headers()
            end = begin + served.breaks.pop(0) if served.breaks else len(content)
            self.wfile.write(content[begin:end])

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


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transfer, "PAUSE", 0.0)
