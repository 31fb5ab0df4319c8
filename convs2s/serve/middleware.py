"""Middleware for every request: security headers, counting and the check of the host."""

import re
import time
from collections.abc import Set

from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from convs2s.serve.metrics import Metrics

# The page loads only its own files, connects only to this server, and cannot be framed.
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}


class Headers:
    """Adds the security headers to every response."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(HEADERS)
            await send(message)

        await self.app(scope, receive, with_headers)


class Counting:
    """Counts requests and their duration, by path; unknown paths share one label, to bound the series."""

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self.app, self.metrics = app, metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        begin, status = time.perf_counter(), 500

        async def noting(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self.app(scope, receive, noting)
        finally:
            path = scope["path"] if "route" in scope else "other"
            self.metrics.requests.labels(path, status).inc()
            self.metrics.seconds.labels(path).observe(time.perf_counter() - begin)


class Hosts:
    """Refuses requests whose Host is not one of the names, whatever the port.

    Any site can point a name of its own at 127.0.0.1; its pages could then read responses (DNS rebinding).
    """

    def __init__(self, app: ASGIApp, names: Set[str]) -> None:
        self.app, self.names = app, names

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        app = self.app
        if scope["type"] == "http":
            host = Request(scope).headers.get("host", "")
            if re.sub(r":\d*$", "", host.lower()) not in self.names:
                advice = "A server with keys (--api-key-file) accepts any."
                error = f"Host {host!r}: expected {', '.join(sorted(self.names))}. {advice}"
                app = JSONResponse({"error": error}, 400)
        await app(scope, receive, send)
