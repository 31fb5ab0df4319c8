"""Headless Chromium, controlled through its DevTools protocol."""

import json
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
from websockets.sync.client import connect
from websockets.sync.connection import Connection

NAMES = ("chromium", "chromium-browser", "google-chrome")
OPTIONS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
    "--remote-debugging-port=0", "--window-size=1100,900", "about:blank",
)  # fmt: skip


def find_browser() -> str | None:
    """Return the path of a Chromium executable, or None."""
    return next(filter(None, map(shutil.which, NAMES)), None)


class Page:
    """A browser page.

    Attributes:
        errors: messages of its console, once `Log.enable` was sent.
    """

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.number = 0
        self.errors = list[str]()

    def send(self, method: str, **params: Any) -> dict[str, Any]:
        """Send a command; return its result."""
        self.number += 1
        self.connection.send(json.dumps({"id": self.number, "method": method, "params": params}))
        while True:
            answer = json.loads(self.connection.recv(30))
            entry = answer.get("params", {}).get("entry", {})
            if entry.get("level") == "error":
                self.errors.append(entry["text"])
            if answer.get("id") == self.number:
                return dict(answer["result"])

    def evaluate(self, expression: str) -> Any:
        """Return the value of a JavaScript expression."""
        result = self.send("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in result, result
        return result["result"].get("value")

    def wait_for(self, condition: str) -> None:
        """Wait until a JavaScript expression is true."""
        self.evaluate(
            f"new Promise((resolve, reject) => {{ const begin = Date.now(); (function look() {{"
            f"if ({condition}) resolve(true); else if (Date.now() - begin > 20000) reject('timeout');"
            "else setTimeout(look, 20); })(); })"
        )

    def open(self, address: str) -> None:
        """Load a page."""
        self.send("Page.navigate", url=address)
        self.wait_for(f"location.href === {json.dumps(address)} && document.readyState === 'complete'")

    def type(self, text: str) -> None:
        """Type text into the focused element, key by key."""
        for character in text:
            self.send("Input.dispatchKeyEvent", type="char", text=character)


@contextmanager
def opened(browser: str, folder: Path) -> Iterator[Page]:
    """Start a browser with its profile in a folder; yield its page."""
    process = subprocess.Popen(
        [browser, *OPTIONS[:-1], f"--user-data-dir={folder}", OPTIONS[-1]],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        port = port_of(process, folder / "DevToolsActivePort")
        pages = httpx.get(f"http://127.0.0.1:{port}/json").json()
        address = next(one["webSocketDebuggerUrl"] for one in pages if one["type"] == "page")
        with connect(address, max_size=None, proxy=None) as connection:
            yield Page(connection)
    finally:
        process.terminate()
        process.wait(10)


def port_of(process: "subprocess.Popen[bytes]", file: Path) -> str:
    """Return the debugging port, which the browser writes to a file once it is listening."""
    end = time.monotonic() + 30
    while time.monotonic() < end and process.poll() is None:
        if file.is_file() and (text := file.read_text()):
            return text.split("\n", maxsplit=1)[0]
        time.sleep(0.02)
    raise RuntimeError("the browser did not start")
