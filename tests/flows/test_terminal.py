"""The output of `make flow` for a run."""

import io
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any
from unittest import mock
from uuid import UUID, uuid4

import httpx
import pytest
from prefect.client.schemas.objects import State, TaskRun
from prefect.states import Cancelled, Completed, Failed, Pending, Running
from rich.console import Console

from pipelines.flows import terminal
from pipelines.flows.terminal import fitting, follow, table

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)


def task(name: str, state: State[Any], seconds: int | None = None) -> TaskRun:
    """Return a stage that took this long."""
    end = None if seconds is None else BEGIN + timedelta(seconds=seconds)
    times = {"start_time": end and BEGIN, "end_time": end}
    found = TaskRun(name=name, task_key=name, dynamic_key=name[:3], state=state)
    return found.model_copy(update={"state_name": state.name, **times})


STAGES = [
    task("download", Completed(name="Unchanged"), 1),
    task("filter", Completed(name="Executed"), 75),
    task("align", Failed(), 3),
    task("train@1", Running()),
    task("train@2", Cancelled(), 4),
    task("evaluate-eva", Pending()),  # so Prefect names a task that has not begun
]


def progress(stage: TaskRun) -> Any:
    """Return a training's artifact."""
    return SimpleNamespace(key="p", task_run_id=stage.id, data=37.5, description="epoch 2 of 4, 9 tokens/s")


class Client:
    """Acts as the server for one run, which runs and then ends; its last log line arrives after that."""

    def __init__(self) -> None:
        self.states: list[State[Any]] = [Running(), Completed(), Completed()]
        self.last = SimpleNamespace(id=uuid4(), task_run_id=None, message="BLEU 42")
        self.log = [SimpleNamespace(id=uuid4(), task_run_id=STAGES[3].id, message="[b]epoch 1[/b]: done")]

    def read_flow_run(self, _: UUID) -> Any:
        if len(self.states) == 1:
            self.log.append(self.last)
        return SimpleNamespace(state=self.states.pop(0))

    def read_task_runs(self, offset: int, **_: Any) -> list[TaskRun]:
        return STAGES[offset:]

    def read_logs(self, _: Any, limit: int, offset: int, __: Any) -> list[Any]:
        return self.log[offset : offset + limit]

    def read_artifacts(self, **_: Any) -> list[Any]:
        return [progress(STAGES[3])]


@pytest.mark.parametrize("is_terminal", [True, False])
def test_a_run_is_followed(is_terminal: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each log line is printed once, unchanged; the table only where a terminal can redraw it."""
    monkeypatch.setattr(terminal, "POLL", 0.0)
    out = io.StringIO()
    console = Console(file=out, force_terminal=is_terminal, width=80, height=30, color_system=None)
    state = follow(Client(), uuid4(), lambda: None, pytest.fail, console)  # type: ignore[arg-type]
    assert state.is_completed()
    assert out.getvalue().count("train@1              [b]epoch 1[/b]: done\n") == 1
    assert ("2 of 6 stages are done" in out.getvalue()) == is_terminal
    erased = "\x1b[1A\x1b[2K" * (len(STAGES) + 2)  # the table at the end, so that the scores come last
    assert out.getvalue().endswith(erased) == is_terminal
    if not is_terminal:
        assert out.getvalue() == "train@1              [b]epoch 1[/b]: done\nflow                 BLEU 42\n"


def test_a_lost_server_is_reported_once_and_when_it_is_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """A single query that fails is no loss: the server may be busy."""
    now, out, calls = iter(range(0, 999, 6)), io.StringIO(), list[bool]()
    monkeypatch.setattr(terminal.time, "sleep", lambda _: None)
    monkeypatch.setattr(terminal.time, "monotonic", lambda: float(next(now)))
    client = Client()
    client.read_flow_run = mock.Mock(  # type: ignore[method-assign]
        side_effect=[httpx.ConnectError(""), *[SimpleNamespace(state=Running())] * 2]
        + [httpx.ReadTimeout("")] * 3
        + [SimpleNamespace(state=Completed())] * 2
    )
    follow(client, uuid4(), lambda: None, calls.append, Console(file=out, width=80))  # type: ignore[arg-type]
    assert calls == [True, False]
    assert out.getvalue().count("The Prefect server answers again.\n") == 1


def test_ctrl_c_leaves_the_terminal_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C stops only the following; a hidden cursor would remain afterwards."""
    monkeypatch.setattr(terminal.time, "sleep", mock.Mock(side_effect=KeyboardInterrupt))
    out = io.StringIO()
    console = Console(file=out, force_terminal=True, width=80, height=30)
    with pytest.raises(KeyboardInterrupt):
        follow(Client(), uuid4(), lambda: None, pytest.fail, console)  # type: ignore[arg-type]
    hidden, shown = (out.getvalue().rfind(f"\x1b[?25{letter}") for letter in "lh")
    assert 0 <= hidden < shown


def test_the_table_shows_states_times_and_progress() -> None:
    """Stages are in pipeline order, as users expect."""
    console = Console(file=io.StringIO(), width=70, color_system=None)
    with console.capture() as shown:
        console.print(table(STAGES, [progress(STAGES[3])], 20))
    lines = [line.split() for line in shown.get().splitlines()]
    assert lines[0] == ["stage", "state", "time"]
    assert lines[1:4] == [
        ["download", "Unchanged", "0:00:01"],
        ["filter", "Executed", "0:01:15"],
        ["align", "Failed", "0:00:03"],
    ]
    assert lines[4][:2] == ["train@1", "Running"] and " ".join(lines[4][-6:]) == "epoch 2 of 4, 9 tokens/s"
    assert lines[5:7] == [["train@2", "Cancelled", "0:00:04"], ["evaluate", "Pending"]]
    assert " ".join(lines[7]) == "2 of 6 stages are done"


@pytest.mark.parametrize(("width", "end"), [(55, "━"), (60, "…"), (80, "9 token…")])
def test_a_narrow_terminal_shows_whole_names(width: int, end: str) -> None:
    """It cuts off the text on a training instead."""
    stages = [task("download@development", Completed(name="Unchanged"), 1), STAGES[3]]
    console = Console(file=io.StringIO(), width=width, color_system=None)
    with console.capture() as shown:
        console.print(table(stages, [progress(STAGES[3])], 20))
    _, first, second, _ = (line.rstrip() for line in shown.get().splitlines())
    assert first.split() == ["download@development", "Unchanged", "0:00:01"]
    assert second.split()[0] == "train@1" and second.endswith(end)


def test_a_short_terminal_shows_what_matters() -> None:
    """Running and failed stages first, then the next to start, then the latest to finish."""

    def names(height: int) -> list[str]:
        return [stage.name for stage in fitting(STAGES, height)]

    assert names(1) == ["align"]
    assert names(3) == ["align", "train@1", "train@2"]
    assert names(4) == ["align", "train@1", "train@2", "evaluate-eva"]
    assert names(5) == ["filter", "align", "train@1", "train@2", "evaluate-eva"]
    assert names(9) == [stage.name for stage in STAGES]
