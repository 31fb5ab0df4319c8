"""The ASGI application: routes, errors, and the files of the web page."""

from collections.abc import AsyncIterator, Set
from contextlib import asynccontextmanager
from pathlib import Path

from fastapi import FastAPI, Request
from fastapi.responses import FileResponse, JSONResponse, Response
from starlette.exceptions import HTTPException
from starlette.middleware.trustedhost import TrustedHostMiddleware

from convs2s.serve.batching import Batcher
from convs2s.serve.insight import add_insight
from convs2s.serve.libretranslate import add_libretranslate
from convs2s.serve.middleware import Border, Metrics
from convs2s.serve.pairs import Pairs
from convs2s.serve.requests import Limits, Refusal
from convs2s.serve.service import Service

PAGE = Path(__file__).parent / "page"
FILES = {
    "/": "index.html", "/page.css": "page.css", "/page.js": "page.js",
    "/docs": "docs.html", "/docs.js": "docs.js",
}  # fmt: skip


def create_app(
    pairs: Pairs,
    limits: Limits,
    keys: tuple[str, ...] = (),
    threads: int | None = None,
    names: Set[str] = frozenset(),
) -> FastAPI:
    """Return the application; its decoding thread runs as long as the application does.

    Args:
        pairs: the models.
        limits: of requests, queue and batches.
        keys: API keys, one of which each request needs; empty if no key is required.
        threads: for PyTorch; None leaves its default.
        names: the server's names, one of which each request must have as its Host; empty to accept any.
    """
    metrics = Metrics()
    batcher = Batcher(limits, threads, metrics.batch_lines.observe)
    metrics.waiting.set_function(batcher.waiting)
    service = Service(pairs, batcher, limits, metrics, keys)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        batcher.start()
        yield
        batcher.stop()

    # FastAPI's own documentation pages load their scripts from other hosts.
    app = FastAPI(title="convs2s", description=f"Translates {pairs}.", docs_url=None, redoc_url=None,
                  lifespan=lifespan)  # fmt: skip
    add_libretranslate(app, service)
    add_insight(app, service)
    add_files(app, service)
    add_errors(app)
    # Any site can point a name of its own at 127.0.0.1; its pages could then read answers (DNS rebinding).
    app.add_middleware(TrustedHostMiddleware, allowed_hosts=sorted(names) or ["*"], www_redirect=False)
    app.add_middleware(Border, metrics=metrics)
    return app


def add_files(app: FastAPI, service: Service) -> None:
    """Add the page and its files, and `/metrics`, which requires a key if the other routes do."""
    for path, file in FILES.items():
        app.add_api_route(path, lambda file=file: FileResponse(PAGE / file), include_in_schema=False)

    @app.get("/metrics", response_class=Response)
    async def metrics(request: Request) -> Response:
        """Return counters in Prometheus' text format."""
        service.check_key(request, None)
        return Response(service.metrics.text(), media_type="text/plain; version=0.0.4; charset=utf-8")


def add_errors(app: FastAPI) -> None:
    """Return every error in LibreTranslate's format."""

    @app.exception_handler(Refusal)
    async def refuse(_: Request, refusal: Refusal) -> Response:
        return JSONResponse({"error": refusal.message}, refusal.status, refusal.headers)

    @app.exception_handler(HTTPException)
    async def report(_: Request, error: HTTPException) -> Response:
        return JSONResponse({"error": str(error.detail)}, error.status_code, error.headers)

    @app.exception_handler(Exception)
    async def apologize(_: Request, __: Exception) -> Response:
        return JSONResponse({"error": "Internal error; the server's log has the details."}, 500)
