"""Requests: fields from JSON, a form or a query string, an API key, and limits."""

import secrets
from dataclasses import dataclass
from typing import Annotated, Any, Literal
from urllib.parse import parse_qs

from fastapi import Depends, HTTPException, Request
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from pydantic import BaseModel, Field, ValidationError

MAX_BYTES = 1 << 20
Bearer = Annotated[HTTPAuthorizationCredentials | None, Depends(HTTPBearer(auto_error=False))]


class TranslateRequest(BaseModel):
    """Text to translate in one language pair, as LibreTranslate defines it."""

    q: str | list[str] = Field(description="A text or several; each line is translated separately.")
    source: str = Field(description="Language code; auto if only one language has this target.")
    target: str = Field(description="Language code.")
    format: Literal["text"] = "text"
    alternatives: int = Field(0, ge=0, description="Maximum number of further translations of each text.")
    api_key: str = Field("", description="If the server requires one; or use Authorization: Bearer.")

    @property
    def texts(self) -> list[list[str]]:
        """The lines of each text, even if there is only one text."""
        return [text.split("\n") for text in ([self.q] if isinstance(self.q, str) else self.q)]


@dataclass(frozen=True)
class RequestReader:
    """Reads and checks requests, as a dependency of routes.

    Attributes:
        keys: API keys, one of which each request needs; empty if no key is required.
        max_characters: total length of a request's texts.
        max_lines: total number of lines in a request's texts.
    """

    keys: tuple[str, ...]
    max_characters: int
    max_lines: int

    async def __call__(self, request: Request, bearer: Bearer) -> TranslateRequest:
        """Return the fields of a request.

        Raises:
            HTTPException: 413 if the body is too large, 403 without a valid key, 400 if a field is missing or
                impossible, or the text is too long.
        """
        body = b""
        async for chunk in request.stream():
            body += chunk
            if len(body) > MAX_BYTES:
                raise HTTPException(413, f"The request is too large; expected at most {MAX_BYTES} bytes.")
        fields = parse(request, body)
        key = (fields.api_key or (bearer.credentials if bearer else "")).encode()
        if self.keys and not any(secrets.compare_digest(key, valid.encode()) for valid in self.keys):
            raise HTTPException(403, "Invalid API key. Send it as api_key or as Authorization: Bearer.")
        lines = [line for text in fields.texts for line in text]
        for name, size, limit in (
            ("characters", sum(map(len, lines)), self.max_characters),
            ("lines", len(lines), self.max_lines),
        ):
            if size > limit:
                raise HTTPException(400, f"Invalid request: {size} {name} exceed the limit of {limit}.")
        return fields


def parse(request: Request, body: bytes) -> TranslateRequest:
    """Return the fields of a body, or of the query string if the body is empty, as some clients send it."""
    content_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    try:
        if content_type == "application/json":
            return TranslateRequest.model_validate_json(body)
        form = parse_qs(body.decode() or request.url.query, keep_blank_values=True, errors="strict")
        fields = {name: values[0] if len(values) == 1 else values for name, values in form.items()}
        return TranslateRequest.model_validate(fields)
    except ValidationError as error:
        faults = "; ".join(
            f"{'.'.join(map(str, fault['loc'])) or 'body'}: {fault['msg']}" for fault in error.errors()
        )
        raise HTTPException(
            400, f"Invalid request: {faults}. Expected JSON, as Content-Type application/json, or a form."
        ) from error
    except UnicodeDecodeError as error:
        raise HTTPException(400, f"Invalid request: expected UTF-8 ({error}).") from error


def describe_body() -> dict[str, Any]:
    """Return the OpenAPI description of the requests that `parse` reads."""
    body = {"schema": TranslateRequest.model_json_schema()}
    content = {"application/json": body, "application/x-www-form-urlencoded": body}
    return {"requestBody": {"required": True, "content": content}}
