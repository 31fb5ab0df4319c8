"""Requests per second and latency of `convs2s serve`, by number of clients.

    python -m benchmarks.serve --model data/models/1 --source FILE [--clients 1 8 32] [--heavy 1]

The server runs in another process. Each client sends lines drawn from the file one after the other, each in
its own request over one connection, and waits for the response. The rows `alone` are for a server that
translates one line at a time: the difference shows the gain from batching across requests. Latency is from
request to response.

With --heavy N, each row is followed by another, in which N more clients keep sending texts of 10,000
characters, the longest that the server takes by default: latency is still that of the short lines.

With --workers N, the server has N processes.

The last column is the share of the time in which the clients, all in one process, were working: near 100 %,
the table would show their limits, not the server's.
"""

import argparse
import http.client
import json
import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from itertools import cycle, islice, repeat, takewhile

import numpy as np

from benchmarks.harness import NUMBER, Report, add_common, program
from convs2s.package.folder import read_settings

COLUMNS = ("batches", "clients", "heavy clients", "requests", "requests/s", "p50 ms", "p95 ms", "p99 ms",
           "heavy answers", "clients' share, %")  # fmt: skip
SETTINGS = {"together": 64, "alone": 1}
"""Maximum lines per batch."""
HEAVY_CHARACTERS = 10_000


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the clients and their requests."""
    add_common(parser, "model", "source", "threads")
    parser.add_argument("--clients", **NUMBER, nargs="+", default=[1, 8, 32])
    parser.add_argument("--requests", **NUMBER, default=400, help="of all clients in total, each a line")
    parser.add_argument("--workers", **NUMBER, default=1, help="processes of the server")
    parser.add_argument("--heavy", **NUMBER, default=0, help="clients that send long texts meanwhile")


def measure(options: argparse.Namespace, report: Report) -> None:
    """Measure both servers with each number of clients."""
    lines = report.draw(options.source, options.requests)
    source, target = read_settings(options.model).languages
    heavy_text = " ".join(islice(cycle(lines), HEAVY_CHARACTERS))[:HEAVY_CHARACTERS]
    *bodies, heavy_body = (
        json.dumps({"q": text, "source": source, "target": target}) for text in [*lines, heavy_text]
    )
    asked = list(islice(cycle(bodies), options.requests))
    report.table(COLUMNS)
    for name, size in SETTINGS.items():
        with start_server(options, size) as address:
            measure_load(address, bodies[:20], options.workers, heavy_body, 0)  # a warm-up
            for clients in options.clients:
                for heavy in dict.fromkeys((0, options.heavy)):
                    figures = measure_load(address, asked, clients, heavy_body, heavy)
                    row = [name, clients, heavy, len(asked), *figures]
                    report.add(**dict(zip(COLUMNS, row, strict=True)))


@contextmanager
def start_server(options: argparse.Namespace, batch_lines: int) -> Iterator[str]:
    """Run a server on a free port; yield its host and port."""
    command = [sys.executable, "-m", "convs2s.cli", "serve", "--model", str(options.model), "--port", "0"]
    numbers = {"threads": options.threads, "workers": options.workers, "batch-lines": batch_lines}
    command += [f"--{name}={number}" for name, number in numbers.items()]
    with subprocess.Popen(command, stderr=subprocess.PIPE, encoding="utf-8") as server:
        try:
            assert server.stderr is not None
            matches = (re.search(r"http://(\S+)", line) for line in server.stderr)
            yield next(match[1] for match in matches if match)
        finally:
            server.terminate()


def measure_load(
    address: str, bodies: Sequence[str], clients: int, heavy_body: str, heavy: int
) -> list[float]:
    """Send every body by some clients, while heavy ones send theirs again and again.

    Returns:
        Requests per second, three percentiles of their latency in milliseconds, the answers that the heavy
        clients got in this time, and the percentage of it in which this process worked.
    """
    waiting = iter(bodies)  # from which each client takes its next request
    is_done = threading.Event()
    seconds, heavy_seconds = list[float](), list[float]()
    with ThreadPoolExecutor(clients + heavy) as threads:
        neighbors = [
            threads.submit(
                run_client,
                address,
                takewhile(lambda _: not is_done.is_set(), repeat(heavy_body)),
                heavy_seconds,
            )
            for _ in range(heavy)
        ]
        try:
            while len(heavy_seconds) < heavy and not any(neighbor.done() for neighbor in neighbors):
                time.sleep(0.01)
            answered_before = len(heavy_seconds)
            begin, begin_of_work = time.perf_counter(), time.process_time()
            for client in [threads.submit(run_client, address, waiting, seconds) for _ in range(clients)]:
                client.result()
            taken, worked = time.perf_counter() - begin, time.process_time() - begin_of_work
            answered = len(heavy_seconds) - answered_before
        finally:
            is_done.set()
        for neighbor in neighbors:
            neighbor.result()
    percentiles = 1000 * np.percentile(seconds, [50, 95, 99])
    return [len(seconds) / taken, *percentiles.tolist(), answered, 100 * worked / taken]


def run_client(address: str, bodies: Iterable[str], seconds: list[float]) -> None:
    """Send requests over one connection, each once the one before is answered; add their seconds."""
    with closing(http.client.HTTPConnection(address, timeout=600)) as connection:
        for body in bodies:
            begin = time.perf_counter()
            connection.request("POST", "/translate", body, {"Content-Type": "application/json"})
            response = connection.getresponse()
            answer = response.read()
            seconds.append(time.perf_counter() - begin)
            assert response.status == http.client.OK, answer


main = program(__doc__, add_options, measure)

if __name__ == "__main__":
    main()
