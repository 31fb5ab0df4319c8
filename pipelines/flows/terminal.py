"""A flow run in the terminal: its log and, where the terminal can show it, a live table of its stages."""

import contextlib
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import httpx
from prefect.client.orchestration import SyncPrefectClient
from prefect.client.schemas.filters import FlowRunFilter, LogFilter
from prefect.client.schemas.objects import Artifact, State, TaskRun
from prefect.client.schemas.sorting import LogSort, TaskRunSort
from rich.console import Console
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Column, Table
from rich.text import Text

from pipelines.flows.summary import read_artifacts

POLL = 2.0  # seconds between queries of a run's state and log
SILENCE = 10.0  # seconds without an answer after which the server counts as lost; also the limit of a query
NAME = len("download@development")  # width of stage names in the log
LABEL = 40  # maximum width of stage names in the table, where rows of a sweep add their labels
PAGE = 200  # log lines or stages per request
STYLES = {
    "Running": "cyan",
    "Executed": "green",
    "Failed": "red",
    "TimedOut": "red",
    "Crashed": "red",
    "Cancelled": "yellow",
}


def follow(
    client: SyncPrefectClient,
    run: UUID,
    check: Callable[[], None],
    lost: Callable[[bool], None],
    console: Console | None = None,
) -> State[Any]:
    """Show a flow run until it ends; return its last state. The table disappears then, and the log stays.

    Prefect's own FlowRunSubscriber loses log lines while the server is unreachable.

    Args:
        check: called while the run waits for a worker; its exceptions are passed on, like those of `lost`.
        lost: called at each query while the server is lost, with True at the first.
    """
    console, seen, ended = console or Console(highlight=False), set[UUID](), False
    live = Live(console=console, auto_refresh=False, transient=True) if console.is_terminal else None
    answered, is_lost = time.monotonic(), False
    with live or contextlib.nullcontext():
        while True:
            try:
                state = client.read_flow_run(run).state
                if is_lost:
                    console.print("The Prefect server answers again.")
                answered, is_lost = time.monotonic(), False
                tasks = read_tasks(client, run)
                for line in new_lines(client, run, tasks, seen):
                    console.print(line, markup=False, soft_wrap=True)
                if live and tasks:
                    trainings = read_artifacts(client, run, type="progress")
                    live.update(table(tasks, trainings, console.height - 4), refresh=True)
                assert state is not None
                if ended and state.is_final():
                    return state
                ended = state.is_final()  # its last log lines may arrive late, so look once more
                if state.is_scheduled():
                    check()
            except httpx.HTTPError:
                if time.monotonic() - answered >= SILENCE:
                    lost(not is_lost)
                    is_lost = True
            time.sleep(POLL)


def new_lines(
    client: SyncPrefectClient, run: UUID, tasks: Sequence[TaskRun], seen: set[UUID]
) -> Iterator[str]:
    """Yield the new log lines of a flow run, each prefixed with its stage's name; adds them to `seen`."""
    of_run = LogFilter.model_validate({"flow_run_id": {"any_": [run]}})
    names: dict[UUID | None, str] = {None: "flow", **{task.id: title(task) for task in tasks}}
    # Threads send their lines in batches, so a line can arrive after newer ones: go back one page.
    offset = max(0, len(seen) - PAGE)
    while page := client.read_logs(of_run, PAGE, offset, LogSort.TIMESTAMP_ASC):
        offset += len(page)
        for log in (log for log in page if log.id not in seen):
            seen.add(log.id)
            yield f"{names.get(log.task_run_id, ''):<{NAME}} {log.message}"


def read_tasks(client: SyncPrefectClient, run: UUID) -> list[TaskRun]:
    """Return the stages of a flow run in the order of submission, which is that of the pipeline."""
    of_run, tasks = FlowRunFilter.model_validate({"id": {"any_": [run]}}), list[TaskRun]()
    while page := client.read_task_runs(
        flow_run_filter=of_run, sort=TaskRunSort.EXPECTED_START_TIME_ASC, limit=PAGE, offset=len(tasks)
    ):
        tasks += page
    return tasks


def table(tasks: Sequence[TaskRun], trainings: Sequence[Artifact], height: int) -> Table:
    """Return the table of stages with state, time and training progress.

    If there are more than `height`, finished stages are left out first, then those that have not started.
    """
    progress = {training.task_run_id: training for training in trainings}
    names = Column("stage", max_width=LABEL, no_wrap=True)
    others = (Column(title, no_wrap=True) for title in ("state", "time", ""))
    # On a narrow terminal, the text on a training is cut off.
    rows = Table(names, *others, Column(ratio=1), expand=True, box=None, header_style="dim")
    shown = fitting(tasks, max(1, height))
    for task in shown:
        state = task.state_name or "Pending"
        bar: ProgressBar | str = ""
        words = Text(no_wrap=True, overflow="ellipsis")
        if (training := progress.get(task.id)) and not (task.state and task.state.is_completed()):
            bar = ProgressBar(completed=float(str(training.data)), width=12)
            words.append(training.description or "")
        rows.add_row(title(task), state, elapsed(task), bar, words, style=STYLES.get(state, "dim"))
    done = sum(task.state is not None and task.state.is_completed() for task in tasks)
    hidden = f", {len(tasks) - len(shown)} not shown" if len(shown) < len(tasks) else ""
    rows.caption, rows.caption_justify = f"{done} of {len(tasks)} stages are done{hidden}", "left"
    return rows


def fitting(tasks: Sequence[TaskRun], height: int) -> list[TaskRun]:
    """Return the stages that fit into `height` rows: running and failed stages first."""

    def rank(number: int) -> tuple[int, int]:
        state = tasks[number].state
        if state is None or state.is_pending() or state.is_scheduled():
            return 1, number  # those to start next
        return (2, -number) if state.is_completed() else (0, number)

    chosen = sorted(range(len(tasks)), key=rank)[:height]
    return [tasks[number] for number in sorted(chosen)]


def title(task: TaskRun) -> str:
    """Return the name of a stage, without the suffix that Prefect adds until it starts."""
    return task.name.removesuffix(f"-{task.dynamic_key[:3]}")


def elapsed(task: TaskRun) -> str:
    """Return a stage's run time so far, or in all; empty before it has started."""
    if task.start_time is None:
        return ""
    end = task.end_time or datetime.now(UTC)
    return str(timedelta(seconds=round((end - task.start_time).total_seconds())))
