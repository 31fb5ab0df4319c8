"""The Prefect server of this clone: `prefect server start`, on a port that stays its owner's.

Prefect's command cannot share its port. If such a server dies while its worker lives, any user of the machine
could take the port, learn the password and give the worker orders. Nor can it keep its pages from asking
another host for the settings of their statistics, which they do even when these are off.
"""

import os
import sys

import uvicorn

from pipelines.flows import access


def main(port: int) -> None:
    """Serve on 127.0.0.1 until a signal: no call without the password, none from pages of another origin."""
    settings = {
        "PREFECT_SERVER_API_AUTH_STRING": os.environ[access.CLIENT],
        "PREFECT_SERVER_CORS_ALLOWED_ORIGINS": os.environ["PREFECT_API_URL"].removesuffix("/api"),
        "PREFECT_SERVER_CSRF_PROTECTION_ENABLED": "true",
    }
    os.environ.update({**settings, **os.environ})
    from prefect.server.api.server import create_app  # noqa: PLC0415  # Prefect reads the environment once

    policy = ("Content-Security-Policy", "connect-src 'self'")
    with access.claim(port) as shared:
        config = uvicorn.Config(create_app(final=True), log_level="warning", headers=[policy])
        uvicorn.Server(config).run(sockets=[shared])


if __name__ == "__main__":
    try:
        main(int(sys.argv[1]))
    except RuntimeError as error:
        sys.exit(f"make flow: {error}")
