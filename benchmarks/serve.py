"""Requests per second and latency of `convs2s serve`, by number of clients.

    python -m benchmarks.serve --model data/models/1 --source FILE [--clients 1 8 32] [--requests 400]

The server runs in another process. Each client sends the lines of the file one after the other, each in its
own request, and waits for the response. The rows `alone` are for a server that translates one line at a time:
the difference shows the gain from batching across requests. Latency is from request to response, as seen by
the client.
--json FILE writes the rows to a file.
"""

import argparse
import asyncio
import json
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import cycle, islice
from pathlib import Path

import httpx

from convs2s.package.folder import read_settings
from convs2s.text.corpus.files import read_lines

COLUMNS = ("batches", "clients", "requests", "requests_per_second", "p50_ms", "p95_ms", "p99_ms")
SETTINGS = {"together": 64, "alone": 1}
"""Maximum lines per batch."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the table.

    Raises:
        ValueError: if the file has no line.
        FileNotFoundError: if the file or a file of the model is missing.
    """
    options = parse(arguments)
    lines = [line for line in read_lines(options.source) if line.strip()]
    if not lines:
        raise ValueError(f"{options.source} has no text; wanted lines to translate.")
    pair = read_settings(options.model).languages
    print("| batches | clients | requests | requests/s | p50 ms | p95 ms | p99 ms |")
    print("|---|---:|---:|---:|---:|---:|---:|")
    rows = []
    for name, size in SETTINGS.items():
        with served(options, size) as address:
            asyncio.run(measure(address, pair, lines[:20], 1))  # a warm-up
            for clients in options.clients:
                asked = list(islice(cycle(lines), options.requests))
                rows.append(dict(zip(COLUMNS, (name, clients, *asyncio.run(
                    measure(address, pair, asked, clients))), strict=True)))  # fmt: skip
                print("| " + " | ".join(map(str, rows[-1].values())) + " |", flush=True)
    if options.json:
        options.json.write_text(json.dumps({"rows": rows}, indent=2) + "\n", encoding="utf-8")


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Return the command line's options."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--model", type=Path, required=True, metavar="DIR", help="model folder")
    parser.add_argument(
        "--source", type=Path, required=True, metavar="FILE", help="text, one sentence per line"
    )
    parser.add_argument("--clients", type=int, nargs="+", default=[1, 8, 32], metavar="N")
    parser.add_argument("--requests", type=int, default=400, metavar="N", help="of all clients in total")
    parser.add_argument("--threads", type=int, default=1, metavar="N", help="of the server's PyTorch")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the rows to this file")
    return parser.parse_args(arguments)


@contextmanager
def served(options: argparse.Namespace, batch_lines: int) -> Iterator[str]:
    """Run a server on a free port; give its address."""
    command = [sys.executable, "-m", "convs2s.cli", "serve", "--model", str(options.model), "--port", "0"]
    numbers = ["--threads", str(options.threads), "--batch-lines", str(batch_lines)]
    with subprocess.Popen([*command, *numbers], stdout=subprocess.PIPE, encoding="utf-8") as server:
        try:
            assert server.stdout is not None
            found = re.search(r"http://\S+/", server.stdout.readline())
            if found is None:
                raise ValueError(f"the server did not start; its message is above ({' '.join(command)}).")
            yield found[0]
        finally:
            server.terminate()


async def measure(
    address: str, pair: tuple[str, str], lines: Sequence[str], clients: int
) -> tuple[int, float, float, float, float]:
    """Send every line; return requests, requests per second, and three percentiles of milliseconds."""
    source, target = pair
    waiting, seconds = iter(lines), list[float]()
    limits = httpx.Limits(max_connections=clients)
    async with httpx.AsyncClient(limits=limits, timeout=600, trust_env=False) as connection:

        async def client() -> None:
            for line in waiting:
                begin = time.perf_counter()
                fields = {"q": line, "source": source, "target": target}
                (await connection.post(f"{address}translate", json=fields)).raise_for_status()
                seconds.append(time.perf_counter() - begin)

        begin = time.perf_counter()
        await asyncio.gather(*(client() for _ in range(clients)))
        taken = time.perf_counter() - begin
    return len(seconds), round(len(seconds) / taken, 1), *percentiles(seconds)


def percentiles(seconds: Sequence[float]) -> tuple[float, float, float]:
    """Return the 50th, 95th and 99th percentile, in milliseconds."""
    cuts = statistics.quantiles(seconds, n=100, method="inclusive") if len(seconds) > 1 else [seconds[0]] * 99
    return round(1000 * cuts[49], 1), round(1000 * cuts[94], 1), round(1000 * cuts[98], 1)


if __name__ == "__main__":
    main()
