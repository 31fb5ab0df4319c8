"""Error responses in LibreTranslate's format: {"error": MESSAGE}."""

from collections.abc import Mapping


class Refusal(Exception):
    """A refused request.

    Args:
        status: HTTP status.
        message: what is wrong and what to do, for the client.
        headers: to send along, such as Retry-After.
    """

    def __init__(self, status: int, message: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(message)
        self.status, self.message, self.headers = status, message, dict(headers or {})
