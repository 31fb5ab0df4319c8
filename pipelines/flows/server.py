"""The Prefect server of this clone: `prefect server start`, on a port that no other user can take over.

Prefect's own command cannot share its port: if the server died before its worker, any local user could bind
the port, learn the password and send the worker runs. It also cannot stop its pages from fetching analytics
settings from another host, which they do even with analytics disabled.
"""

import os
import sys

import uvicorn
from fastapi import FastAPI
from starlette.routing import Mount

from pipelines.flows import access

DOCS = ("/docs", "/docs/oauth2-redirect", "/redoc", "/openapi.json")


def main(port: int) -> None:
    """Serve on 127.0.0.1 until a signal; calls need the password, and cannot come from another origin."""
    settings = {
        "PREFECT_SERVER_API_AUTH_STRING": os.environ[access.CLIENT],
        "PREFECT_SERVER_CORS_ALLOWED_ORIGINS": os.environ["PREFECT_API_URL"].removesuffix("/api"),
        "PREFECT_SERVER_CSRF_PROTECTION_ENABLED": "true",
    }
    os.environ.update({**settings, **os.environ})
    from prefect.server.api.server import create_app  # noqa: PLC0415  # Prefect reads the environment once

    policy = ("Content-Security-Policy", "connect-src 'self'")
    with access.claim(port) as shared:
        config = uvicorn.Config(without_docs(create_app(final=True)), log_level="warning", headers=[policy])
        uvicorn.Server(config).run(sockets=[shared])


def without_docs(app: FastAPI) -> FastAPI:
    """Remove FastAPI's own pages: they load scripts from another host, and most need no password."""
    for part in (app, *(route.app for route in app.routes if isinstance(route, Mount))):
        routes = part.router.routes  # type: ignore[attr-defined]  # a FastAPI as well
        routes[:] = [route for route in routes if getattr(route, "path", None) not in DOCS]
    return app


if __name__ == "__main__":
    try:
        main(int(sys.argv[1]))
    except RuntimeError as error:
        sys.exit(f"make flow: {error}")
