"""How much the server takes on."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """Limits of the server; a request beyond one is refused with a message that names it.

    Attributes:
        body_bytes: of a request (413).
        characters: of a request's texts together (400, as LibreTranslate).
        lines: of a request's texts together (400).
        waiting: lines that wait for translation, of all clients (503).
        waiting_per_client: of these, from one address (429).
        batch_lines: translated at once.
        collect_seconds: how long an idle server waits for more lines before it translates the first.
    """

    body_bytes: int = 1 << 20
    characters: int = 10_000
    lines: int = 200
    waiting: int = 1000
    waiting_per_client: int = 400
    batch_lines: int = 64
    collect_seconds: float = 0.004
