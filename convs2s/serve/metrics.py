"""The server's metrics, for Prometheus."""

from collections.abc import Callable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
BATCHES = (1, 2, 4, 8, 16, 32, 64, 128)


class Metrics:
    """The metrics of one server."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.requests = Counter(
            "convs2s_requests", "Requests answered.", ["path", "status"], registry=self.registry
        )
        self.seconds = Histogram(
            "convs2s_request_seconds", "Time from request to response.", ["path"], buckets=SECONDS,
            registry=self.registry,
        )  # fmt: skip
        self.lines = Counter(
            "convs2s_lines", "Lines accepted for translation.", ["source", "target"], registry=self.registry
        )
        self.batch_lines = Histogram(
            "convs2s_batch_lines", "Lines translated at once.", buckets=BATCHES, registry=self.registry
        )
        self.waiting = Gauge("convs2s_waiting_lines", "Lines waiting now.", registry=self.registry)

    def watch(self, waiting: Callable[[], int]) -> None:
        """Read the number of waiting lines from a function."""
        self.waiting.set_function(waiting)

    def text(self) -> bytes:
        """Return all metrics in Prometheus' text format."""
        return generate_latest(self.registry)
