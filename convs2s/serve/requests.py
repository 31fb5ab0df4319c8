"""Requests: fields from JSON, a form or a query string, an API key, and limits."""

import asyncio
import re
import secrets
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypeVar
from urllib.parse import parse_qs

from fastapi import Depends, HTTPException, Request
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from pydantic import BaseModel, Field, ValidationError, model_validator

MAX_BYTES = 1 << 20
MAX_PARTS = 1000
"""Of a multipart form."""
MAX_FAULTS = 5
"""That an answer names; each item of a list can be one."""
READ_SECONDS = 30.0
"""How long a client may take to send the body of its request."""

PARAMETER = re.compile(r';\s*([\w*]+)\s*=\s*(?:"([^"]*)"|([^\s;"]*))')
"""Of a header, such as `; name="q"`: its name, and its value with or without quotation marks."""
DISPOSITION = re.compile(rb"^content-disposition:(.*)$", re.IGNORECASE | re.MULTILINE)

Bearer = Annotated[HTTPAuthorizationCredentials | None, Depends(HTTPBearer(auto_error=False))]


class TextRequest(BaseModel):
    """A text or several, as LibreTranslate defines it."""

    q: str | list[str] = Field(
        description="A text or several; each line's sentences are translated one by one."
    )
    api_key: str = Field("", description="If the server requires one; or use Authorization: Bearer.")

    @model_validator(mode="before")
    @classmethod
    def drop_absent(cls, fields: Any) -> Any:
        """Leave out fields that are null or empty, as clients send what they do not set; `q` may be empty."""
        if not isinstance(fields, dict):
            return fields
        given = {name: value for name, value in fields.items() if value is not None}
        return {name: value for name, value in given.items() if value != "" or name == "q"}

    @property
    def texts(self) -> list[list[str]]:
        """The lines of each text, even if there is only one text."""
        texts = [self.q] if isinstance(self.q, str) else self.q
        return [text.split("\n") for text in texts]


class TranslateRequest(TextRequest):
    """Text to translate in one language pair, as LibreTranslate defines it."""

    source: str = Field(description="Language code; auto if only one language has this target.")
    target: str = Field(description="Language code.")
    format: Literal["text", "html"] = Field("text", description="Of the texts; html is for /translate only.")
    alternatives: int = Field(0, ge=0, description="Maximum number of further translations of each text.")

    @property
    def texts(self) -> list[list[str]]:
        """The lines of each text; a page of HTML counts as one."""
        if self.format == "text":
            return super().texts
        return [[page] for page in ([self.q] if isinstance(self.q, str) else self.q)]


Fields = TypeVar("Fields", bound=TextRequest)


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

    async def read_translate(self, request: Request, bearer: Bearer) -> TranslateRequest:
        """Return the fields of a request for a translation; errors as `read`."""
        return await self.read(TranslateRequest, request, bearer)

    async def read_text(self, request: Request, bearer: Bearer) -> TextRequest:
        """Return the fields of a request that only sends a text; errors as `read`."""
        return await self.read(TextRequest, request, bearer)

    async def read(
        self, kind: type[Fields], request: Request, bearer: HTTPAuthorizationCredentials | None
    ) -> Fields:
        """Return the fields of a request.

        Raises:
            HTTPException: 408 if the body does not arrive in time, 413 if it is too large, 403 without a
                valid key, 400 if a field is missing or impossible, or the text is too long.
            ClientDisconnect: if the client leaves before it has sent the body.
        """
        fields = parse_body(kind, request, await read_body(request))
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


async def read_body(request: Request) -> bytes:
    """Return the body of a request; errors as `RequestReader.read`."""
    body = bytearray()
    try:
        async with asyncio.timeout(READ_SECONDS):
            async for chunk in request.stream():
                body += chunk
                if len(body) > MAX_BYTES:
                    raise HTTPException(413, f"The request is too large; expected at most {MAX_BYTES} bytes.")
    except TimeoutError as error:
        message = f"The request was not complete after {READ_SECONDS:.0f} seconds."
        raise HTTPException(408, message, {"Connection": "close"}) from error
    return bytes(body)


def parse_body(kind: type[Fields], request: Request, body: bytes) -> Fields:
    """Return the fields of a body, or of the query string if the body is empty, as some clients send it."""
    content_type = request.headers.get("content-type", "")
    media_type = content_type.partition(";")[0].strip().lower()
    try:
        if media_type == "application/json":
            return kind.model_validate_json(body)
        if media_type == "multipart/form-data":
            form = parse_multipart(content_type, body)
        else:
            form = parse_qs(body.decode() or request.url.query, keep_blank_values=True, errors="strict")
        fields = {name: values[0] if len(values) == 1 else values for name, values in form.items()}
        return kind.model_validate(fields)
    except ValidationError as error:
        raise HTTPException(400, f"Invalid request: {describe_faults(error)}") from error
    except UnicodeDecodeError as error:
        raise HTTPException(400, f"Invalid request: expected UTF-8 ({error}).") from error


def parse_multipart(content_type: str, body: bytes) -> dict[str, list[str]]:
    """Return the fields of a multipart form (RFC 7578), without its files.

    Raises:
        HTTPException: 400 if the form is not whole.
    """
    boundary = read_parameters(content_type).get("boundary", "")
    # The line end before a boundary belongs to it; nothing needs to precede the first.
    _, *parts = (b"\r\n" + body).split(f"\r\n--{boundary}".encode(), MAX_PARTS + 1)
    if not boundary or not parts or not parts[-1].startswith(b"--"):
        raise HTTPException(
            400,
            "Invalid request: the multipart form is not whole. Expected the boundary that its Content-Type "
            f"names before each of at most {MAX_PARTS} fields, and with -- after the last.",
        )
    form: dict[str, list[str]] = {}
    for part in parts[:-1]:
        headers, _, content = part.partition(b"\r\n\r\n")
        disposition = DISPOSITION.search(headers)
        parameters = read_parameters(disposition[1].decode(errors="replace")) if disposition else {}
        if not parameters.keys() & {"filename", "filename*"}:
            form.setdefault(parameters.get("name", ""), []).append(content.decode())
    return form


def read_parameters(header: str) -> dict[str, str]:
    """Return the parameters of a header, by their names in lower case."""
    return {name.lower(): quoted or plain for name, quoted, plain in PARAMETER.findall(header)}


def describe_faults(error: ValidationError) -> str:
    """Return what is wrong with fields, in LibreTranslate's words where it refuses the same."""
    faults = error.errors()
    sentences = []
    for fault in faults[:MAX_FAULTS]:
        name = ".".join(map(str, fault["loc"])) or "body"
        if fault["type"] == "missing":
            sentences.append(f"missing {name} parameter")
        elif fault["type"] == "literal_error":
            sentences.append(f"{fault['input']} {name} is not supported; expected {fault['ctx']['expected']}")
        else:
            sentences.append(f"{name}: {fault['msg']}")
    if len(faults) == 1 and faults[0]["loc"]:
        return sentences[0]
    # Probably the whole body was meant to be something else.
    return f"{'; '.join(sentences)}. Expected JSON, as Content-Type application/json, or a form."


def describe_body(kind: type[TextRequest]) -> dict[str, Any]:
    """Return the OpenAPI description of the requests that `parse_body` reads."""
    body = {"schema": kind.model_json_schema()}
    types = ("application/json", "application/x-www-form-urlencoded", "multipart/form-data")
    return {"requestBody": {"required": True, "content": dict.fromkeys(types, body)}}
