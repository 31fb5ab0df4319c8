"""A flow run asks whether it has been cancelled; the server's answers are made up here."""

import contextlib
import threading
from collections.abc import Iterator
from typing import Any
from uuid import UUID, uuid4

import httpx
import pytest
from prefect.client.schemas.objects import FlowRun
from prefect.states import Cancelled, Cancelling, Crashed, Running, State

from pipelines.flows import cancellation
from pipelines.flows.dvc_stage import Stop


class Answers:
    """A client that gives these answers, one by one, then repeats the last; it keeps what it is told."""

    def __init__(self, *answers: State[Any] | Exception) -> None:
        self.answers = list(answers)
        self.told = list[State[Any]]()

    def read_flow_run(self, run: UUID) -> FlowRun:
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        return FlowRun(id=run, flow_id=run, state=answer)

    def set_flow_run_state(self, _: UUID, state: State[Any], force: bool = False) -> None:
        assert force or not state.is_running(), "the server refuses to take back an end"
        self.told.append(state)


@pytest.mark.parametrize(
    ("state", "cancelled", "told"),
    [
        (Running(), False, []),
        (Cancelling(), True, []),
        (Cancelled(), True, []),
        (Crashed(), False, ["Running"]),
    ],
)
def test_a_run_knows_whether_it_is_cancelled(state: State[Any], cancelled: bool, told: list[str]) -> None:
    """One that is shown as Crashed after an outage says that it is alive, or nobody could cancel it."""
    client: Any = Answers(state)
    assert cancellation.is_cancelled(uuid4(), client) == cancelled
    assert [str(one.name) for one in client.told] == told


@contextlib.contextmanager
def watching(client: Answers, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Stop, threading.Event]]:
    """Have a run ask a client until the end of the block; yield what is set when it is cancelled, or over."""
    monkeypatch.setattr(cancellation, "client_without_retries", lambda: contextlib.nullcontext(client))
    stop, over = Stop(), threading.Event()
    thread = threading.Thread(target=cancellation.watch, args=(uuid4(), stop, over))
    thread.start()
    yield stop, over
    over.set()
    thread.join()


def test_a_run_asks_until_it_is_cancelled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the server answered before: it may be restarted while a training goes on for days."""
    monkeypatch.setattr(cancellation, "POLL", 0.01)
    client = Answers(Running(), httpx.ConnectError("refused"), ValueError("no JSON"), Crashed(), Cancelling())
    with watching(client, monkeypatch) as (stop, _):
        assert stop.wait(20)
    assert [state.name for state in client.told] == ["Running"]


def test_a_run_asks_once_more_at_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """It would otherwise miss a cancellation in its last seconds, and keep what it made as an experiment."""
    monkeypatch.setattr(cancellation, "POLL", 1000.0)
    with watching(Answers(Cancelling()), monkeypatch) as (stop, _):
        assert not stop.is_set()
    assert stop.is_set()
