"""What all routes share: models, batches, limits, keys, metrics."""

import asyncio
import hmac
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from fastapi import Request

from convs2s.package.translator import Translation
from convs2s.serve.batching import Batcher, Work
from convs2s.serve.middleware import Metrics
from convs2s.serve.pairs import Pair, Pairs
from convs2s.serve.requests import Limits, Refusal, TextRequest

EMPTY = Translation("", 0.0, 0.0, [], [], [], None, [])


@dataclass(frozen=True)
class Service:
    """The state of a server.

    Attributes:
        keys: API keys; empty if no key is required.
    """

    pairs: Pairs
    batcher: Batcher
    limits: Limits
    metrics: Metrics
    keys: tuple[str, ...] = ()

    def check_key(self, request: Request, key: str | None) -> None:
        """Raise Refusal 403 unless the request has a valid key, or no key is required."""
        given = key or request.headers.get("authorization", "").removeprefix("Bearer ")
        # Compare with every key, in constant time, so that timing leaks nothing about them.
        sent = given.encode("utf-8", "replace")
        valid = [hmac.compare_digest(sent, valid_key.encode()) for valid_key in self.keys]
        if self.keys and not any(valid):
            raise Refusal(403, "Invalid API key. Send the server's key as api_key or Authorization: Bearer.")

    def check_size(self, texts: Sequence[str]) -> None:
        """Raise Refusal 400 if the texts are too long or too many."""
        characters, lines = sum(map(len, texts)), sum(len(text.split("\n")) for text in texts)
        if characters > self.limits.characters:
            raise Refusal(
                400,
                f"Invalid request: request ({characters}) exceeds text limit ({self.limits.characters} "
                "characters).",
            )
        if max(lines, len(texts)) > self.limits.lines:
            raise Refusal(
                400, f"Invalid request: request ({lines}) exceeds batch limit ({self.limits.lines} lines)."
            )

    async def translate(self, asked: TextRequest, request: Request) -> list[list[list[Translation]]]:
        """Return, for each text and each of its lines, the hypotheses, best first."""
        self.check_size(asked.texts)
        pair = self.pairs.find(asked.source, asked.target)
        texts = [text.split("\n") for text in asked.texts]
        filled = [line for lines in texts for line in lines if line.strip()]
        found = iter(await self.work(pair, pair.translate, filled, request))
        return [[next(found) if line.strip() else [EMPTY] for line in lines] for lines in texts]

    async def work(self, pair: Pair, work: Work, lines: Sequence[str], request: Request) -> list[Any]:
        """Process lines in batches with those of other requests; stop if the client disconnects."""
        futures = self.batcher.submit(work, lines, request.client.host if request.client else "")
        self.metrics.lines.labels(pair.source, pair.target).inc(len(lines))
        results = asyncio.gather(*map(asyncio.wrap_future, futures))
        gone = asyncio.ensure_future(wait_for_disconnect(request))
        both: set[asyncio.Future[Any]] = {results, gone}
        await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
        gone.cancel()
        if not results.done():
            results.cancel()
            with suppress(asyncio.CancelledError):
                await results
            raise Refusal(499, "The client has closed the connection.")
        return results.result()


async def wait_for_disconnect(request: Request) -> None:
    """Return when the client disconnects; the request's body must have been read."""
    while (await request.receive())["type"] != "http.disconnect":
        pass
