"""Addresses that flows take from users: checked before anything uses them, and shown without their secrets.

A message never quotes an address that is wrong: it may be a password in the wrong place.
"""

import os
import re
from collections.abc import Iterator
from logging import Formatter, LogRecord
from typing import Any

import httpx

from convs2s.base.messages import redact

PROXIES = ("http_proxy", "https_proxy", "all_proxy")
# As httpx names what it has called; a web hook's path is its password.
CALLED = re.compile(r"((?:for url|Redirect location:) '|HTTP Request: \w+ )(\w+://[^\s'/?#]+)([^\s']*)")


def check_address(name: str, address: str, example: str, *, may_have_secrets: bool) -> None:
    """Raise a ValueError if this is no address of an HTTP server.

    Args:
        name: what has this address, for the message.
        may_have_secrets: whether user, password and query may be part of it.
    """
    fault = None
    try:
        url = httpx.URL(address)
    except httpx.InvalidURL:
        fault = "a text that is no address"
    else:
        if not address:
            fault = "an empty text"
        elif re.search(r"\s", address) or url.scheme not in ("http", "https") or not url.host:
            fault = "one that does not begin with http://HOST or https://HOST, or has spaces"
        elif url.port is not None and not 1 <= url.port <= 65535:
            fault = f"port {url.port}"
        elif not may_have_secrets and (url.userinfo or url.query or url.fragment):
            fault = "one with a user, a password, a query or a fragment, which logs would show"
    if fault:
        raise ValueError(f"{name}: expected an address, such as {example}, found {fault}.")


def drop_unusable_proxies() -> Iterator[str]:
    """Remove variables with proxies that Prefect's client cannot use; yield a sentence for each.

    It would fail on them even for a server that it calls without a proxy.
    """
    for name, value in [*os.environ.items()]:
        if name.lower() not in PROXIES or not value:
            continue
        proxy = value if "://" in value else f"http://{value}"
        try:
            httpx.HTTPTransport(proxy=proxy, verify=False).close()  # it calls nobody
        except (ImportError, ValueError, httpx.InvalidURL):
            del os.environ[name]
            yield (
                f"{name}={redact(proxy)} is not used by flows and their stages: expected http://HOST:PORT, "
                "or socks5://HOST:PORT after: pip install socksio"
            )


def make_formatter(**settings: Any) -> Formatter:
    """Return the formatter of all that Prefect's programs log to terminals and files: without secrets."""
    from prefect.logging.formatters import PrefectFormatter  # noqa: PLC0415  # reads the environment

    class RedactingFormatter(PrefectFormatter):
        """Prefect's own, without the secrets in addresses."""

        def format(self, record: LogRecord) -> str:
            """Return a record's lines, with their traceback."""
            return redact_calls(super().format(record))

    return RedactingFormatter(**settings)


def redact_calls(text: str) -> str:
    """Return a text without secrets, as `redact` does; of calls, Prefect's aside, only the host is left."""
    api = os.environ.get("PREFECT_API_URL")

    def shorten(call: re.Match[str]) -> str:
        begin, host, path = call.groups()
        return call[0] if api and f"{host}{path}".startswith(api) else f"{begin}{host}/..."

    return redact(CALLED.sub(shorten, text))
