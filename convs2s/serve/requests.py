"""Request parsing: JSON, a form or a query string -> checked fields."""

import json
from collections.abc import AsyncIterator
from typing import Any, TypeVar
from urllib.parse import parse_qs

from fastapi import Request
from pydantic import BaseModel, Field, ValidationError
from starlette.requests import ClientDisconnect

from convs2s.serve.refusal import Refusal


class Keyed(BaseModel):
    """A request that may carry an API key."""

    api_key: str | None = Field(None, description="If the server requires one; or use Authorization: Bearer.")


class TextRequest(Keyed):
    """Text to translate in one language pair."""

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


async def parsed(request: Request, kind: type[RequestT], max_bytes: int) -> RequestT:
    """Return the fields of a request.

    Raises:
        Refusal: 413 if the body is too large, 415 if it is neither JSON nor a form, 400 if a field is missing
            or impossible.
    """
    body = await limited(request.stream(), max_bytes)
    # deep-translator sends an empty body and all fields in the query string.
    fields = single(parse_qs(request.url.query, keep_blank_values=True))
    if body:
        fields |= decoded(body, request.headers.get("content-type", "").split(";")[0].strip().lower())
    try:
        return kind.model_validate(fields)
    except ValidationError as error:
        raise Refusal(400, f"Invalid request: {'; '.join(map(described, error.errors()))}.") from error


async def limited(stream: AsyncIterator[bytes], max_bytes: int) -> bytes:
    """Return a body, reading no more than allowed."""
    body = b""
    try:
        async for chunk in stream:
            body += chunk
            if len(body) > max_bytes:
                raise Refusal(413, f"The request is too large; wanted at most {max_bytes} bytes.")
    except ClientDisconnect as error:
        raise Refusal(499, "The client has closed the connection.") from error
    return body


def decoded(body: bytes, content_type: str) -> dict[str, Any]:
    """Return the fields of a body."""
    try:
        if content_type == "application/json":
            content = json.loads(body)
            json.dumps(content, ensure_ascii=False).encode()  # fails on lone surrogates
            if not isinstance(content, dict):
                raise Refusal(400, "Invalid request: found JSON that is not an object; wanted an object.")
            return content
        if content_type == "application/x-www-form-urlencoded":
            return single(parse_qs(body.decode(), keep_blank_values=True, errors="strict"))
    except (ValueError, RecursionError) as error:
        raise Refusal(400, f"Invalid request: the body is not {content_type} in UTF-8 ({error}).") from error
    raise Refusal(
        415,
        f"Content-Type {content_type or '(none)'}: wanted application/json or "
        "application/x-www-form-urlencoded.",
    )


def single(fields: dict[str, list[str]]) -> dict[str, Any]:
    """Return a form's fields; only repeated fields are lists."""
    return {name: values[0] if len(values) == 1 else values for name, values in fields.items()}


def described(fault: Any) -> str:
    """Describe a faulty field in LibreTranslate's words, or pydantic's."""
    name = str(fault["loc"][0]) if fault["loc"] else "request"
    return f"missing {name} parameter" if fault["type"] == "missing" else f"{name}: {fault['msg']}"


def body_schema(kind: type[BaseModel]) -> dict[str, Any]:
    """Return the OpenAPI description of a route's request body."""
    content = {"schema": kind.model_json_schema()}
    types = ("application/json", "application/x-www-form-urlencoded")
    return {"requestBody": {"required": True, "content": dict.fromkeys(types, content)}}
