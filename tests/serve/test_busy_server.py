"""A real server with clients that send long texts, and one that sends a line now and then."""

import threading
from collections.abc import Sequence

import httpx
import pytest

from convs2s.serve.pairs import LanguagePair
from convs2s.serve.turns import Batch, Request, Turns
from tests.package.small_package import WORDS
from tests.serve.running import running

CLIENTS = 3
LINES = 20


@pytest.mark.slow
def test_a_line_waits_for_at_most_a_part_of_each_long_text(
    pairs: Sequence[LanguagePair], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Counted are the batches of others between the arrival of a line and its own batch, not the time."""
    log = list[tuple[str, list[Request]]]()
    add, take = Turns.add, Turns.take

    def noted_add(turns: Turns[Request], request: Request) -> None:
        log.append(("arrives", [request]))
        add(turns, request)

    def noted_take(turns: Turns[Request], now: float) -> Batch[Request] | None:
        batch = take(turns, now)
        if batch is not None:
            log.append(("begins", [part.request for part in batch.parts]))
        return batch

    monkeypatch.setattr(Turns, "add", noted_add)
    monkeypatch.setattr(Turns, "take", noted_take)
    texts = ["\n".join(f"{word} {number % 7}." for number in range(200)) for word in WORDS[:CLIENTS]]
    stop = threading.Event()

    def translate(address: str, text: str) -> None:
        answer = httpx.post(
            f"{address}translate", json={"q": text, "source": "en", "target": "de"}, timeout=60
        )
        assert answer.status_code == httpx.codes.OK

    with running(pairs) as address:

        def keep_busy(text: str) -> None:
            while not stop.is_set():
                translate(address, text)

        threads = [threading.Thread(target=keep_busy, args=(text,)) for text in texts]
        for thread in threads:
            thread.start()
        try:
            for _ in range(LINES):
                translate(address, "ein Haus")
        finally:
            stop.set()
            for thread in threads:
                thread.join()
    batches_before = list[int]()
    for place, (event, [request, *_]) in enumerate(log):
        if event == "arrives" and len(request.lines) == 1:
            begins = [requests for event, requests in log[place:] if event == "begins"]
            batches_before.append(next(n for n, requests in enumerate(begins) if request in requests))
    assert len(batches_before) == LINES
    assert max(batches_before) <= CLIENTS
    assert any(len(request.lines) > 1 for _, [request, *_] in log[len(log) // 2 :])  # they were at work
