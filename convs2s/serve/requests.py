"""Requests: limits, fields from JSON, a form or a query string, and refusals in LibreTranslate's format."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeVar
from urllib.parse import parse_qs

from fastapi import Request
from pydantic import BaseModel, Field, ValidationError
from starlette.requests import ClientDisconnect


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


class Refusal(Exception):
    """A refused request: the HTTP status, {"error": MESSAGE}, and headers such as Retry-After."""

    def __init__(self, status: int, message: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(message)
        self.status, self.message, self.headers = status, message, dict(headers or {})


class TextRequest(BaseModel):
    """Text to translate in one language pair."""

    api_key: str | None = Field(None, description="If the server requires one; or use Authorization: Bearer.")
    q: str | list[str] = Field(description="A text or several; each line is translated separately.")
    source: str = Field(description="Language code; auto if only one language has this target.")
    target: str = Field(description="Language code.")

    @property
    def texts(self) -> list[str]:
        """The texts as a list, even if there is only one."""
        return [self.q] if isinstance(self.q, str) else self.q


class TranslateRequest(TextRequest):
    """A request for `/translate`, as LibreTranslate defines it."""

    format: str = Field("text", description="Only text is supported.")
    alternatives: int = Field(0, ge=0, description="Maximum number of further translations of each text.")


RequestT = TypeVar("RequestT", bound=BaseModel)


async def parse(request: Request, kind: type[RequestT], max_bytes: int) -> RequestT:
    """Return the fields of a request.

    Raises:
        Refusal: 413 if the body is too large, 415 if it is neither JSON nor a form, 400 if a field is missing
            or impossible.
    """
    body = b""
    try:
        async for chunk in request.stream():
            body += chunk
            if len(body) > max_bytes:
                raise Refusal(413, f"The request is too large; expected at most {max_bytes} bytes.")
    except ClientDisconnect as error:
        raise Refusal(499, "The client has closed the connection.") from error
    # deep-translator sends an empty body and all fields in the query string.
    fields = parse_form(request.url.query, errors="replace")
    if body:
        fields |= parse_body(body, request.headers.get("content-type", "").split(";")[0].strip().lower())
    try:
        return kind.model_validate(fields)
    except ValidationError as error:
        raise Refusal(400, f"Invalid request: {'; '.join(map(describe, error.errors()))}.") from error


def parse_body(body: bytes, content_type: str) -> dict[str, Any]:
    """Return the fields of a body."""
    try:
        if content_type == "application/json":
            content = json.loads(body)
            json.dumps(content, ensure_ascii=False).encode()  # fails on lone surrogates
            if not isinstance(content, dict):
                raise ValueError("expected an object")
            return content
        if content_type == "application/x-www-form-urlencoded":
            return parse_form(body.decode(), errors="strict")
    except (ValueError, RecursionError) as error:
        raise Refusal(400, f"Invalid request: the body is not {content_type} in UTF-8 ({error}).") from error
    raise Refusal(
        415,
        "expected the Content-Type application/json or application/x-www-form-urlencoded, found "
        f"{content_type or 'none'}.",
    )


def parse_form(text: str, errors: str) -> dict[str, Any]:
    """Return a form's fields; only repeated fields are lists. `errors` says what to do about wrong UTF-8."""
    fields = parse_qs(text, keep_blank_values=True, errors=errors)
    return {name: values[0] if len(values) == 1 else values for name, values in fields.items()}


def describe(fault: Any) -> str:
    """Describe a wrong field in LibreTranslate's words, or pydantic's."""
    name = str(fault["loc"][0]) if fault["loc"] else "request"
    return f"missing {name} parameter" if fault["type"] == "missing" else f"{name}: {fault['msg']}"


def body_schema(kind: type[BaseModel]) -> dict[str, Any]:
    """Return the OpenAPI description of a route's request body."""
    content = {"schema": kind.model_json_schema()}
    types = ("application/json", "application/x-www-form-urlencoded")
    return {"requestBody": {"required": True, "content": dict.fromkeys(types, content)}}
