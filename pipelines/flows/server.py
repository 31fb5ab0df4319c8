"""Prefect's server on SQLite, without losing to `database is locked`: what `make flow` starts.

SQLite refuses at once, whatever the timeout, what a transaction wants to write if another one has written
since it first read. Most transactions of Prefect read first. Its clients ask again, but an event that has
been refused four times is dropped: a failure is then not told, or a run that has ended is taken for dead.
"""

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from prefect.cli import app
from prefect.server.database.configurations import AioSqliteConfiguration
from prefect.server.database.dependencies import set_database_config
from prefect.settings import get_current_settings
from sqlalchemy import make_url
from sqlalchemy.ext.asyncio import AsyncSession, AsyncSessionTransaction


class WriteLockFirst(AioSqliteConfiguration):
    """SQLite whose transactions take the write lock when they begin: each waits until the one before ends."""

    @asynccontextmanager
    async def begin_transaction(
        self, session: AsyncSession, with_for_update: bool = False
    ) -> AsyncIterator[AsyncSessionTransaction]:
        """Begin a transaction that may write, whether or not Prefect says so."""
        async with super().begin_transaction(session, with_for_update=True) as transaction:
            yield transaction


def main() -> None:
    """Run `prefect server start` with the options of the command line."""
    url = get_current_settings().server.database.connection_url
    assert url is not None  # by default, that of a file in PREFECT_HOME
    if make_url(url.get_secret_value()).get_backend_name() == "sqlite":
        set_database_config(WriteLockFirst(url.get_secret_value()))
    sys.argv[1:1] = ["server", "start"]
    app()


if __name__ == "__main__":
    main()
