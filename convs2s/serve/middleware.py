"""What happens at the border of every request: security headers, and metrics for Prometheus."""

import time
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

# The page loads only its own files, connects only to this server, and cannot be framed.
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
BATCHES = (1, 2, 4, 8, 16, 32, 64, 128)


class Metrics:
    """The metrics of one server."""

    def __init__(self) -> None:
        own: Any = {"registry": CollectorRegistry()}
        self.registry = own["registry"]
        self.requests = Counter("convs2s_requests", "Requests answered.", ["path", "status"], **own)
        self.seconds = Histogram("convs2s_request_seconds", "Time to the answer.", ["path"], **own)
        self.lines = Counter("convs2s_lines", "Lines accepted.", ["source", "target"], **own)
        self.batch_lines = Histogram("convs2s_batch_lines", "Lines in a batch.", buckets=BATCHES, **own)
        self.waiting = Gauge("convs2s_waiting_lines", "Lines waiting now.", **own)

    def text(self) -> bytes:
        """Return all metrics in Prometheus' text format."""
        return generate_latest(self.registry)


class Border:
    """Adds the security headers to every response, and counts requests and their duration, by path.

    Unknown paths share one label, to bound the series.
    """

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self.app, self.metrics = app, metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        begin, status = time.perf_counter(), 500

        async def send_with_headers(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                MutableHeaders(scope=message).update(HEADERS)
            await send(message)

        try:
            await self.app(scope, receive, send_with_headers)
        finally:
            path = scope["path"] if "route" in scope else "other"
            self.metrics.requests.labels(path, status).inc()
            self.metrics.seconds.labels(path).observe(time.perf_counter() - begin)
