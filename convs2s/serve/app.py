"""The ASGI application: routes, errors, and the files of the web page."""

from collections.abc import AsyncIterator, Set
from contextlib import asynccontextmanager
from pathlib import Path

from fastapi import FastAPI, Request
from fastapi.responses import FileResponse, JSONResponse, Response
from starlette.exceptions import HTTPException

from convs2s.serve.batching import Batcher
from convs2s.serve.insight import add_insight
from convs2s.serve.libretranslate import add_libretranslate
from convs2s.serve.limits import Limits
from convs2s.serve.metrics import Metrics
from convs2s.serve.middleware import Counting, Headers, Hosts
from convs2s.serve.pairs import Pairs
from convs2s.serve.refusal import Refusal
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
    metrics.watch(batcher.waiting)
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
    add_metrics(app, service)
    add_files(app)
    add_errors(app)
    if names:
        app.add_middleware(Hosts, names=names)
    app.add_middleware(Counting, metrics=metrics)
    app.add_middleware(Headers)
    return app


def add_metrics(app: FastAPI, service: Service) -> None:
    """Add `/metrics`, which requires a key if the other routes do."""

    @app.get("/metrics", response_class=Response)
    async def metrics(request: Request) -> Response:
        """Return counters in Prometheus' text format."""
        service.check_key(request, None)
        return Response(service.metrics.text(), media_type="text/plain; version=0.0.4; charset=utf-8")


def add_files(app: FastAPI) -> None:
    """Add the page and its files."""
    for path, file in FILES.items():
        app.add_api_route(path, lambda file=file: FileResponse(PAGE / file), include_in_schema=False)


def add_errors(app: FastAPI) -> None:
    """Return every error in LibreTranslate's format."""

    @app.exception_handler(Refusal)
    async def refused(_: Request, refusal: Refusal) -> Response:
        return JSONResponse({"error": refusal.message}, refusal.status, refusal.headers)

    @app.exception_handler(HTTPException)
    async def failed(_: Request, error: HTTPException) -> Response:
        return JSONResponse({"error": str(error.detail)}, error.status_code, error.headers)

    @app.exception_handler(Exception)
    async def broken(_: Request, __: Exception) -> Response:
        return JSONResponse({"error": "Internal error; the server's log has the details."}, 500)
