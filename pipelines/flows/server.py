"""The Prefect server of this clone: `prefect server start`, on a port that stays its owner's.

Prefect's command cannot share its port. If such a server dies while its worker lives, any user of the machine
could take the port, learn the password and give the worker orders.
"""

import sys

import uvicorn
from prefect.server.api.server import create_app

from pipelines.flows import access


def main(port: int) -> None:
    """Serve on 127.0.0.1 until a signal."""
    config = uvicorn.Config(create_app(final=True), log_level="warning")
    uvicorn.Server(config).run(sockets=[access.share(port)])


if __name__ == "__main__":
    main(int(sys.argv[1]))
