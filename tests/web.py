"""A local web server that breaks off, refuses and counts requests, as each test sets it up; and archives."""

import io
import tarfile
import threading
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

TAR_MODES = {".tar": "w", ".tgz": "w:gz", ".tar.gz": "w:gz", ".tar.bz2": "w:bz2", ".tar.xz": "w:xz"}


@dataclass
class Site:
    """The server's files and settings, and the requests it has received."""

    address: str = ""
    files: dict[str, bytes] = field(default_factory=dict)  # contents by path without the leading slash
    breaks: list[int] = field(default_factory=list)  # bytes after which the next responses end early
    statuses: list[int] = field(default_factory=list)  # error statuses of the next responses
    reason: str | None = None  # that error responses give
    redirects: dict[str, str] = field(default_factory=dict)  # targets by path
    asked: list[str] = field(default_factory=list)  # path of each request

    def url(self, name: str) -> str:
        return f"{self.address}/{name}"


@contextmanager
def serve() -> Iterator[Site]:
    """Run a server without files until the end of the block."""
    site = Site()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            name = self.path.removeprefix("/").partition("?")[0]
            site.asked.append(name)
            if name in site.redirects:
                self.send_response(302)
                self.send_header("Location", site.redirects[name])
                self.end_headers()
                return
            content = site.files.get(name)
            if site.statuses or content is None:
                self.send_error(site.statuses.pop(0) if site.statuses else 404, site.reason)
                return
            self.send_response(200)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content[: site.breaks.pop(0)] if site.breaks else content)

        do_HEAD = do_GET  # the client ignores the content

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    site.address = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield site
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def make_archive(name: str, members: Mapping[str, bytes], links: Mapping[str, str] | None = None) -> bytes:
    """Return a zip or tar archive, as its name says; a tar also with symbolic links."""
    stream = io.BytesIO()
    if name.endswith(".zip"):
        with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as file:
            for member, data in members.items():
                file.writestr(member, data)
        return stream.getvalue()
    mode: Any = next(mode for suffix, mode in TAR_MODES.items() if name.endswith(suffix))
    with tarfile.open(fileobj=stream, mode=mode) as tar:
        for member, data in members.items():
            info = tarfile.TarInfo(member)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
        for info.name, info.linkname in (links or {}).items():
            info.type = tarfile.SYMTYPE
            tar.addfile(info)
    return stream.getvalue()
