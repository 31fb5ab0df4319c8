"""How connections and requests end in a bounded time, whatever their clients do, and when the server ends."""

import asyncio
import socket
from typing import Any

import h11
import uvicorn
from fastapi.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

GRACE_SECONDS = 8
"""How long requests may still run once the server is to end; Docker kills it after 10."""
IDLE_SECONDS = 30.0
"""How long a client may take to send the header of its next request, or to take the end of an answer."""


class Connection(H11Protocol):
    """A connection that is closed if its client does not send its next request, or take its answer, in time.

    uvicorn limits only the pause between an answer and the first byte of the next request.
    """

    idle_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn's
        """Limit the time until the first request."""
        super().connection_made(transport)
        self.set_idle_timer()

    def data_received(self, data: bytes) -> None:
        """Stop the timer if the header of a request is complete."""
        super().data_received(data)
        self.set_idle_timer()

    def on_response_complete(self) -> None:
        """Limit the time until the next request; the end of the answer may still have to be sent."""
        super().on_response_complete()
        self.set_idle_timer()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the timer."""
        super().connection_lost(exc)
        if self.idle_timer is not None:
            self.idle_timer.cancel()

    def set_idle_timer(self) -> None:
        """Let the timer run while no request is being read or answered."""
        is_idle = self.cycle is None or self.cycle.response_complete
        if is_idle and self.idle_timer is None:
            self.idle_timer = self.loop.call_later(IDLE_SECONDS, self.transport.abort)
        elif not is_idle and self.idle_timer is not None:
            self.idle_timer.cancel()
            self.idle_timer = None

    def send_400_response(self, msg: str) -> None:
        """Refuse what is not HTTP; a request that came before it on the connection gets no answer any more.

        uvicorn would still send that answer, or this one within it, and log h11's refusal with a traceback.
        """
        if self.cycle is not None and not self.cycle.response_complete:
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            super().send_400_response(msg)
        else:  # an answer has begun
            self.transport.close()

    def _should_upgrade(self) -> bool:
        """Answer requests that offer another protocol, as Java's clients do, without a line in the log."""
        return False


class EndingMiddleware:
    """Answers HEAD like GET, whose body uvicorn leaves out, and with 503 what the server's end cuts off."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        if scope["method"] == "HEAD":
            scope = {**scope, "method": "GET"}
        has_started = False

        async def note_start(message: Message) -> None:
            nonlocal has_started
            has_started = True
            await send(message)

        try:
            await self.app(scope, receive, note_start)
        except asyncio.CancelledError:  # by uvicorn, which has logged that it cancels requests
            if not has_started:
                error = JSONResponse({"error": "The server is shutting down."}, 503, {"Connection": "close"})
                await error(scope, receive, send)


class Server(uvicorn.Server):
    """Lets the requests that it cancels in the end answer before its signal ends the process."""

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End; a second Ctrl-C has already said that nobody is to wait."""
        await super().shutdown(sockets)
        if self.server_state.tasks and not self.force_exit:
            await asyncio.wait(self.server_state.tasks, timeout=1)


UVICORN: dict[str, Any] = {
    "http": Connection,
    "ws": "none",
    "lifespan": "off",  # nothing to start or to end; a second Ctrl-C would log a traceback of it
    "access_log": False,  # query strings may have texts and keys
    "limit_concurrency": 1000,
    "timeout_graceful_shutdown": GRACE_SECONDS,
}
"""Settings of uvicorn."""
