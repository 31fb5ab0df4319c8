"""The server's limits."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """Limits of the server; a request beyond a limit is refused with a message that names it.

    Attributes:
        body_bytes: size of a request (413).
        characters: total length of a request's texts (400, as in LibreTranslate).
        lines: total number of lines in a request's texts (400).
        waiting: lines waiting for translation, from all clients (503).
        waiting_per_client: lines waiting for translation, from one address (429).
        batch_lines: lines translated at once.
        collect_seconds: how long an idle server waits for more lines before it translates the first.
    """

    body_bytes: int = 1 << 20
    characters: int = 10_000
    lines: int = 200
    waiting: int = 1000
    waiting_per_client: int = 400
    batch_lines: int = 64
    collect_seconds: float = 0.004
