"""Requests per second and latency of `convs2s serve`, by number of clients.

    python -m benchmarks.serve --model data/models/1 --source FILE [--clients 1 8 32] [--requests 400]

The server runs in another process. Each client sends the lines of the file one after the other, each in its
own request over one connection, and waits for the response. The rows `alone` are for a server that translates
one line at a time: the difference shows the gain from batching across requests. Latency is from request to
response. The last column is the share of the time in which the clients, all in one process, were working:
near 100 %, the table would show their limits, not the server's.
"""

import argparse
import http.client
import json
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from itertools import cycle, islice
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.machine import machine, make_parser, print_table, write_report
from convs2s.base.files import read_lines
from convs2s.package.folder import read_settings

COLUMNS = ("batches", "clients", "requests", "requests/s", "p50 ms", "p95 ms", "p99 ms", "clients' share")
SETTINGS = {"together": 64, "alone": 1}
"""Maximum lines per batch."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the table."""
    parser = make_parser(__doc__)
    add = parser.add_argument
    add("--model", type=Path, required=True, metavar="DIR", help="model folder")
    add("--source", type=Path, required=True, metavar="FILE", help="text, one sentence per line")
    add("--clients", type=int, nargs="+", default=[1, 8, 32], metavar="N")
    add("--requests", type=int, default=400, metavar="N", help="of all clients in total")
    add("--threads", type=int, default=1, metavar="N", help="of the server's PyTorch")
    options = parser.parse_args(arguments)
    lines = [line for line in read_lines(options.source) if line.strip()]
    rows = list(measurements(options, lines))
    print_table(COLUMNS, rows)
    write_report(options.json, {"machine": machine()}, [dict(zip(COLUMNS, row, strict=True)) for row in rows])


def measurements(options: argparse.Namespace, lines: Sequence[str]) -> Iterator[list[Any]]:
    """Yield the rows of the table."""
    pair = read_settings(options.model).languages
    asked = list(islice(cycle(lines), options.requests))
    for name, size in SETTINGS.items():
        with start_server(options, size) as address:
            measure(address, pair, lines[:20], 1)  # a warm-up
            for clients in options.clients:
                yield [name, clients, *measure(address, pair, asked, clients)]


@contextmanager
def start_server(options: argparse.Namespace, batch_lines: int) -> Iterator[str]:
    """Run a server on a free port; yield its host and port."""
    command = [sys.executable, "-m", "convs2s.cli", "serve", "--model", str(options.model), "--port", "0"]
    numbers = ["--threads", str(options.threads), "--batch-lines", str(batch_lines)]
    with subprocess.Popen([*command, *numbers], stderr=subprocess.PIPE, encoding="utf-8") as server:
        try:
            assert server.stderr is not None
            matches = (re.search(r"http://(\S+)", line) for line in server.stderr)
            yield next(match[1] for match in matches if match)
        finally:
            server.terminate()


def measure(address: str, pair: tuple[str, str], lines: Sequence[str], clients: int) -> list[Any]:
    """Send every line.

    Returns:
        Number of requests, requests per second, three percentiles of the latency in milliseconds, and the
        clients' share of the time.
    """
    source, target = pair
    bodies = [json.dumps({"q": line, "source": source, "target": target}) for line in lines]
    waiting = iter(bodies)  # from which each client takes its next request
    seconds = list[float]()

    def run_client() -> None:
        """Send waiting requests, each once the one before is answered, until none is left."""
        with closing(http.client.HTTPConnection(address, timeout=600)) as connection:
            for body in waiting:
                begin = time.perf_counter()
                connection.request("POST", "/translate", body, {"Content-Type": "application/json"})
                response = connection.getresponse()
                answer = response.read()
                seconds.append(time.perf_counter() - begin)
                assert response.status == http.client.OK, answer

    begin, begin_of_work = time.perf_counter(), time.process_time()
    with ThreadPoolExecutor(clients) as threads:
        for client in [threads.submit(run_client) for _ in range(clients)]:
            client.result()
    taken, worked = time.perf_counter() - begin, time.process_time() - begin_of_work
    milliseconds = 1000 * np.percentile(seconds, [50, 95, 99])
    return [len(seconds), len(seconds) / taken, *milliseconds.tolist(), f"{worked / taken:.0%}"]


if __name__ == "__main__":
    main()
