"""The server's database: what happens at the same moment, without a server."""

import asyncio
import sys
from pathlib import Path

import pytest
from prefect.server.database.dependencies import MODELS_DEPENDENCIES
from prefect.settings import PREFECT_SERVER_DATABASE_CONNECTION_URL, temporary_settings
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncEngine

from pipelines.flows import server
from pipelines.flows.server import WriteLockFirst


def test_no_transaction_is_refused_or_sees_what_another_changes(tmp_path: Path) -> None:
    """Prefect drops an event that SQLite has refused four times; a failed run is then not told."""
    database = WriteLockFirst(f"sqlite+aiosqlite:///{tmp_path}/prefect.db")

    async def count(engine: AsyncEngine) -> None:
        """Read, then write, as most transactions of Prefect do."""
        async with await database.session(engine) as session, database.begin_transaction(session):
            number = await session.scalar(text("SELECT number FROM counter"))
            await asyncio.sleep(0.05)
            await session.execute(text(f"UPDATE counter SET number = {number} + 1"))

    async def run() -> int:
        engine = await database.engine()
        async with engine.begin() as connection:
            await connection.execute(text("CREATE TABLE counter AS SELECT 0 AS number"))
        await asyncio.gather(*[count(engine) for _ in range(5)])
        async with engine.connect() as connection:
            return int(await connection.scalar(text("SELECT number FROM counter")) or 0)

    assert asyncio.run(run()) == 5


@pytest.mark.parametrize(
    ("url", "kind"),
    [("sqlite+aiosqlite:///x.db", WriteLockFirst), ("postgresql+asyncpg://a:b@127.0.0.1/c", type(None))],
)
def test_only_sqlite_is_changed(url: str, kind: type, monkeypatch: pytest.MonkeyPatch) -> None:
    """PostgreSQL has many writers; the server starts with the options that it is given."""
    started = list[list[str]]()
    monkeypatch.setitem(MODELS_DEPENDENCIES, "database_config", None)
    monkeypatch.setattr(server, "app", lambda: started.append(sys.argv[1:]))
    monkeypatch.setattr(sys, "argv", ["server", "--port", "4207"])
    with temporary_settings({PREFECT_SERVER_DATABASE_CONNECTION_URL: url}):
        server.main()
    assert type(MODELS_DEPENDENCIES["database_config"]) is kind
    assert started == [["server", "start", "--port", "4207"]]
