"""The memory of a server that runs for long."""

import http.client
import json
import random
import re
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from tests.package.small_package import WORDS, write_small_package

GROWTH = 90
"""MiB; measured: 55, and 149 with products compiled for each number of rows."""


def resident(process: int) -> float:
    """Return the memory of a process in MiB."""
    status = Path(f"/proc/{process}/status").read_text(encoding="utf-8")
    return int(re.findall(r"VmRSS:\s+(\d+) kB", status)[0]) / 1024


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the memory of a process is read in /proc")
def test_requests_of_many_sizes_do_not_fill_the_memory(tmp_path: Path) -> None:
    """oneDNN compiles products for each number of rows, and keeps a thousand: half a GiB."""
    folder = write_small_package(tmp_path)
    draw = random.Random(1)
    command = [sys.executable, "-m", "convs2s.cli", "serve", "--model", str(folder), "--port", "0"]
    with subprocess.Popen([*command, "--threads", "1"], stderr=subprocess.PIPE, encoding="utf-8") as server:
        try:
            assert server.stderr is not None
            address = next(match[1] for line in server.stderr if (match := re.search(r"http://(\S+)", line)))
            with closing(http.client.HTTPConnection(address, timeout=60)) as connection:

                def translate(lines: int) -> None:
                    text = "\n".join(
                        " ".join(draw.choices(WORDS, k=draw.randint(1, 12))) for _ in range(lines)
                    )
                    body = json.dumps({"q": text, "source": "en", "target": "de"})
                    connection.request("POST", "/translate", body, {"Content-Type": "application/json"})
                    response = connection.getresponse()
                    assert response.status == http.client.OK, response.read()
                    response.read()

                translate(1)
                before = resident(server.pid)
                for _ in range(10):
                    for lines in range(1, 65):
                        translate(lines)
                growth = resident(server.pid) - before
        finally:
            server.terminate()
    assert growth < GROWTH
