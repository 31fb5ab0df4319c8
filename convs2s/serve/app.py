"""The ASGI application: LibreTranslate's routes, what the page shows besides, and the page."""

from asyncio import to_thread
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any, TypeVar

from fastapi import Depends, FastAPI, Request
from fastapi.responses import FileResponse, JSONResponse
from starlette.exceptions import HTTPException
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import ClientDisconnect

from convs2s.package.html_page import TranslatedPage
from convs2s.package.translator import TranslatedText
from convs2s.serve.answers import (
    Attended,
    Detected,
    Language,
    Line,
    Lines,
    Model,
    Translated,
    count_emptied,
    count_unknown,
    describe_attention,
    describe_line,
    describe_pair,
    join_translations,
    list_alternatives,
    list_languages,
)
from convs2s.serve.batching import Batcher
from convs2s.serve.endings import EndingMiddleware
from convs2s.serve.pairs import LanguagePair, find_pair
from convs2s.serve.requests import RequestReader, TextRequest, TranslateRequest, describe_body
from convs2s.text.languages import language_name

PAGE = Path(__file__).parent / "page"
QUICK = {"text": 5000, "html": 500}
"""Characters that are split into sentences, or read as HTML, within about half a millisecond."""
Value = TypeVar("Value")


def create_app(
    pairs: Sequence[LanguagePair], reader: RequestReader, batcher: Batcher, names: Sequence[str] = ("*",)
) -> FastAPI:
    """Return the application.

    Args:
        pairs: the models.
        reader: checks requests for translations.
        batcher: translates.
        names: of the server, one of which each request must have as its Host.
    """
    # The pages of the API would load scripts from other hosts; its description, /openapi.json, needs none.
    app = FastAPI(
        title="convs2s",
        description=f"Translates {', '.join(map(str, pairs))}.",
        docs_url=None,
        redoc_url=None,
    )
    # Any site can point a name of its own at 127.0.0.1; its pages could then read answers (DNS rebinding).
    app.add_middleware(TrustedHostMiddleware, allowed_hosts=names, www_redirect=False)
    app.add_middleware(EndingMiddleware)
    add_error_handlers(app)
    add_translations(app, pairs, reader, batcher)
    add_refusals(app)
    add_descriptions(app, pairs, reader)
    # Single routes: files mounted at / would answer 404 where another method is needed.
    for path, file in (("/", "index.html"), ("/page.css", "page.css"), ("/page.js", "page.js")):
        app.add_route(path, partial(send_file, PAGE / file), include_in_schema=False)
    return app


def add_error_handlers(app: FastAPI) -> None:
    """Make errors answers in LibreTranslate's format."""

    @app.exception_handler(HTTPException)
    async def report(_: Request, error: HTTPException) -> JSONResponse:
        """Answer with an error's message."""
        return JSONResponse({"error": error.detail}, error.status_code, error.headers)

    @app.exception_handler(ClientDisconnect)
    async def drop(_: Request, __: ClientDisconnect) -> JSONResponse:
        """End a request whose client has left while sending it; nobody gets the answer."""
        return JSONResponse({"error": "The client has closed the connection."}, 499)

    @app.exception_handler(Exception)
    async def report_bug(_: Request, __: Exception) -> JSONResponse:
        """Answer a request that has failed by a bug or for lack of memory; uvicorn logs the traceback."""
        return JSONResponse({"error": "The server has failed to answer; its log says why."}, 500)


def add_translations(
    app: FastAPI, pairs: Sequence[LanguagePair], reader: RequestReader, batcher: Batcher
) -> None:
    """Add the routes that take a text."""
    sources = sorted({pair.source for pair in pairs})

    Fields = Annotated[TranslateRequest, Depends(reader.read_translate)]

    @app.post("/translate", response_model_exclude_none=True, openapi_extra=describe_body(TranslateRequest))
    async def translate(fields: Fields, request: Request) -> Translated:
        """Translate a text or a list of texts, given as JSON, as a form or in the query string."""
        pair = find_pair(pairs, fields.source, fields.target)
        texts: Sequence[Sequence[Lines]]
        if fields.format == "html":
            texts = await translate_pages(fields, request, pair, batcher)
        else:
            texts = await translate_lines(fields, request, pair, batcher, only_best=not fields.alternatives)

        def write() -> tuple[list[str], list[list[str]]]:
            """Return the best and the further translations of each text."""
            further = [list_alternatives(lines, fields.alternatives) for lines in texts]
            return [join_translations(lines, 0) for lines in texts], further

        best, further = await beside(fields, write)
        detected = Detected(language=pair.source, confidence=100.0 if len(sources) == 1 else 0.0)

        def as_asked(values: list[Any]) -> Any:
            """Return a value for a text, a list of them for a list of texts."""
            return values[0] if isinstance(fields.q, str) else values

        return Translated(
            translatedText=as_asked(best),
            alternatives=as_asked(further) if fields.alternatives else None,
            detectedLanguage=as_asked([detected] * len(texts)) if fields.source == "auto" else None,
            unknownCharacters=count_unknown([line for lines in texts for line in lines]),
            emptiedElements=count_emptied([line for lines in texts for line in lines]),
        )

    @app.post("/detect", openapi_extra=describe_body(TextRequest))
    async def detect(fields: Annotated[TextRequest, Depends(reader.read_text)]) -> list[Detected]:
        """Return the language of a text: known if the server has one source language."""
        if not fields.q:
            raise HTTPException(400, "Invalid request: missing q parameter")
        if len(sources) > 1:
            languages = " and ".join(sources)
            raise HTTPException(400, f"Languages are not detected; this server translates from {languages}.")
        return [Detected(language=sources[0], confidence=100.0)]

    @app.post("/n-best", response_model_exclude_none=True, openapi_extra=describe_body(TranslateRequest))
    async def n_best(fields: Fields, request: Request) -> list[Line]:
        """Translate a text; for each line, return all hypotheses of the beam, with scores."""
        require_text(fields)
        pair = find_pair(pairs, fields.source, fields.target)
        texts = await translate_lines(fields, request, pair, batcher, only_best=False)
        translated = [line for lines in texts for line in lines]
        sources = [line for text in fields.texts for line in text]
        return await beside(fields, lambda: [*map(describe_line, sources, translated)])

    @app.post("/attention", openapi_extra=describe_body(TranslateRequest))
    async def attention(fields: Fields, request: Request) -> Attended:
        """Translate one line as one sentence; return what each decoder layer attended to."""
        require_text(fields)
        pair = find_pair(pairs, fields.source, fields.target)
        lines = [line for text in fields.texts for line in text]
        if len(lines) != 1 or pair.members > 1:
            raise HTTPException(400, "Invalid request: expected one line of text, and a single model.")
        try:
            [layers] = await batcher.process(pair.attend, lines, request.is_disconnected)
        except ValueError as error:  # without words, or too long
            raise HTTPException(400, f"Invalid request: {error}") from error
        return describe_attention(layers)


def add_refusals(app: FastAPI) -> None:
    """Add routes that refuse what this server does not offer, as a LibreTranslate where it is disabled."""

    @app.post("/suggest", include_in_schema=False)
    async def suggest() -> None:
        """Refuse a better translation."""
        raise HTTPException(403, "Suggestions are disabled on this server.")

    @app.post("/translate_file", include_in_schema=False)
    async def translate_file() -> None:
        """Refuse a file."""
        raise HTTPException(403, "Files translation are disabled on this server.")


async def translate_lines(
    fields: TranslateRequest, request: Request, pair: LanguagePair, batcher: Batcher, only_best: bool
) -> list[list[TranslatedText]]:
    """Return the translations of the lines of each text."""
    texts = await beside(fields, lambda: [[pair.split(line) for line in text] for text in fields.texts])
    sentences = [sentence for text in texts for line in text for sentence in line]
    work = pair.translate_best if only_best else pair.translate
    ranked = iter(await batcher.process(work, sentences, request.is_disconnected, pair.part_lines))
    return [
        [TranslatedText(line, [next(ranked) for _ in line], pair.target) for line in text] for text in texts
    ]


async def translate_pages(
    fields: TranslateRequest, request: Request, pair: LanguagePair, batcher: Batcher
) -> list[list[TranslatedPage]]:
    """Return the translation of each page of HTML, in a list."""
    pages = await beside(fields, lambda: [pair.read_html(page) for [page] in fields.texts])
    sentences = [sentence for page in pages for sentence in page.sentences]
    work = pair.trace if fields.alternatives else pair.trace_best
    ranked = iter(await batcher.process(work, sentences, request.is_disconnected, pair.part_lines))
    return [[TranslatedPage(page, [next(ranked) for _ in page.sentences])] for page in pages]


async def beside(fields: TranslateRequest, call: Callable[[], Value]) -> Value:
    """Return what a call returns; if the texts are long, it does not hold up the event loop meanwhile."""
    is_long = sum(map(len, [fields.q] if isinstance(fields.q, str) else fields.q)) > QUICK[fields.format]
    return await to_thread(call) if is_long else call()


def require_text(fields: TranslateRequest) -> None:
    """Raise HTTPException unless a request's text is plain."""
    if fields.format != "text":
        raise HTTPException(400, f"{fields.format} format is not supported here; expected 'text'")


def add_descriptions(app: FastAPI, pairs: Sequence[LanguagePair], reader: RequestReader) -> None:
    """Add the routes that say what the server offers."""

    @app.get("/languages")
    async def languages() -> list[Language]:
        """List the languages, each with its possible targets."""
        return list_languages(pairs)

    @app.get("/health")
    async def health() -> dict[str, str]:
        """Report that the server is up."""
        return {"status": "ok"}

    @app.get("/models")
    async def models() -> list[Model]:
        """List the models with what is known about them."""
        return [describe_pair(pair) for pair in pairs]

    @app.get("/frontend/settings")
    async def frontend_settings() -> dict[str, Any]:
        """List what LibreTranslate's clients ask for before they translate."""
        first = pairs[0]
        return {
            "charLimit": reader.max_characters,
            "frontendTimeout": 500,
            "apiKeys": bool(reader.keys),
            "keyRequired": bool(reader.keys),
            "suggestions": False,
            "filesTranslation": False,
            "supportedFilesFormat": [],
            "language": {
                "source": {"code": first.source, "name": language_name(first.source)},
                "target": {"code": first.target, "name": language_name(first.target)},
            },
        }

    @app.get("/spec", include_in_schema=False)
    async def spec() -> dict[str, Any]:
        """Return /openapi.json under LibreTranslate's name."""
        return app.openapi()


async def send_file(file: Path, _: Request) -> FileResponse:
    """Return a file of the page."""
    return FileResponse(file)
