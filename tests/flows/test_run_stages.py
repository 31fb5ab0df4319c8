"""How concurrent stages share the machine, and the states that they end in; nothing is run here."""

import logging
import os
from dataclasses import replace
from typing import Any

import pytest
from prefect.states import Cancelled, Completed, Failed, State

from pipelines.flows import run_stages
from pipelines.flows.dvc_stage import GuardedRunner, StageEnded, StageFailed, Stop
from pipelines.flows.form import RunParams
from pipelines.flows.graph import Stage
from pipelines.flows.run_stages import StagesRun
from tests.flows import toy


def stage(name: str, gpus: int = 0) -> Stage:
    """Return a stage without parents."""
    return Stage(name, "python", frozenset(), gpus, 1.0, (), name, toy.ROOT)


def first_environment(
    *spaces: list[Stage], fresh: tuple[str, ...] = (), gpus: tuple[str, ...] = (), **params: Any
) -> dict[str, str]:
    """Return the environment of the first stage of a run on a machine with 12 cores."""
    rows = [[replace(s, label=str(row)) for s in stages] for row, stages in enumerate(spaces)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "sched_getaffinity", lambda _: set(range(12)), raising=False)
        patch.setattr(run_stages, "visible_gpus", lambda: [*gpus])
        patch.setattr(run_stages, "up_to_date", lambda _: set(fresh))
        run = StagesRun(RunParams(**params), [s for row in rows for s in row], Stop())
        return run.environment(rows[0][0], gpus[:1])


def threads(*spaces: list[Stage], **settings: Any) -> str | None:
    """Return the number of threads given to the first stage."""
    return first_environment(*spaces, **settings).get("OMP_NUM_THREADS")


SEEDS = [stage(f"train@{seed}", 1) for seed in range(1, 5)]
PAIR = [stage("train@1", 2), stage("train@2", 2)]  # of two processes each


@pytest.mark.parametrize(
    ("spaces", "settings", "expected"),
    [
        pytest.param([SEEDS], {}, "6", id="two at once by default"),
        pytest.param([SEEDS], {"parallel": 99}, "3", id="more slots than stages"),
        pytest.param([SEEDS[:1], SEEDS[1:2]], {}, "6", id="rows of a sweep"),
        pytest.param([PAIR], {}, "3", id="two processes each"),
        pytest.param(
            [PAIR], {"gpus": ("0", "1", "2", "4"), "parallel": 1}, "3", id="as many as there are GPUs for"
        ),
    ],
)
def test_stages_of_one_kind_that_run_at_once_divide_the_cores(
    spaces: list[list[Stage]], settings: dict[str, Any], expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two trainings with a thread per core are slower than one after the other."""
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    assert threads(*spaces, **settings) == expected


@pytest.mark.parametrize(
    ("spaces", "settings"),
    [
        pytest.param([[SEEDS[0], stage("align")]], {"parallel": 8}, id="others are of another kind"),
        pytest.param([SEEDS], {"parallel": 1}, id="one slot"),
        pytest.param([SEEDS[:2]], {"fresh": ("train@2",)}, id="others are up to date"),
        pytest.param([SEEDS], {"remote": "all"}, id="each trains on another machine"),
        pytest.param([SEEDS[:1], SEEDS[:1]], {}, id="rows of a sweep that share it"),
        pytest.param([PAIR[:1]], {}, id="a training divides them itself"),
    ],
)
def test_a_stage_that_runs_alone_has_all_cores(
    spaces: list[list[Stage]], settings: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It computes as under `dvc repro`, so that the default run gives the same bytes."""
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    assert threads(*spaces, **settings) is None


def test_the_users_number_of_threads_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the user knows what else the machine has to do."""
    monkeypatch.setenv("OMP_NUM_THREADS", "5")
    assert threads(SEEDS) == "5"


@pytest.mark.parametrize(
    ("has_program", "gpus", "seen"), [(True, ("MIG-7",), "MIG-7"), (True, (), ""), (False, (), "3")]
)
def test_a_stage_sees_no_gpu_that_is_not_leased(
    has_program: bool, gpus: tuple[str, ...], seen: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where nvidia-smi has failed, all trainings would take the first one, or hang on it, for a day.

    Without that program, CUDA may still know GPUs, of another make: nothing is changed then.
    """
    monkeypatch.setattr(run_stages, "has_driver_program", lambda: has_program)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3")
    assert first_environment(SEEDS, gpus=gpus)["CUDA_VISIBLE_DEVICES"] == seen


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> StagesRun:
    """A run of `align`, which is up to date, and a training; without GPUs, with one CPU slot."""
    monkeypatch.setattr(run_stages, "visible_gpus", list)
    monkeypatch.setattr(run_stages, "up_to_date", lambda _: {"align"})
    monkeypatch.setattr(run_stages, "get_run_logger", lambda: logging.getLogger("tests"))
    return StagesRun(RunParams(parallel=1), [stage("align"), SEEDS[0]], Stop())


@pytest.mark.parametrize(
    ("name", "outcome", "kind", "state"),
    [
        ("align", StageFailed("it need not run"), "COMPLETED", "Unchanged"),
        ("train@1", "Cached", "COMPLETED", "Cached"),
        ("train@1", StageFailed("toy"), "FAILED", "Failed"),
        ("train@1", StageEnded("toy"), "CANCELLED", "Cancelled"),
        ("train@1", StageEnded("toy", "TimedOut"), "CANCELLED", "TimedOut"),
    ],
)
def test_a_state_says_how_a_stage_ended(
    name: str, outcome: Any, kind: str, state: str, run: StagesRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Prefect starts the next stages after Completed, and tries Failed again, but not what was cancelled."""

    def execute(*_: Any) -> str:
        if isinstance(outcome, Exception):
            raise outcome
        return str(outcome)

    monkeypatch.setattr(run_stages, "update_stage", execute)
    ended = run_stages.run_stage.fn(run, stage(name))
    assert (ended.type.value, ended.name) == (kind, state)
    assert (ended.message == "toy") == (kind in {"FAILED", "CANCELLED"})


@pytest.mark.parametrize(
    ("states", "is_stopped", "kind", "message"),
    [
        pytest.param(
            [Completed(name="Cached"), Completed(name="Cached")], False, "COMPLETED", "2 Cached", id="success"
        ),
        pytest.param(
            [Completed(name="Executed"), Failed(message="toy")],
            False,
            "FAILED",
            "1 Executed, 1 Failed\n\ntrain@1 toy",
            id="failure",
        ),
        pytest.param(
            [Completed(name="Cached"), Cancelled()], True, "CANCELLED", "1 Cached, 1 Cancelled", id="stop"
        ),
    ],
)
def test_the_state_of_a_run_sums_up_its_stages(
    states: list[State[Any]],
    is_stopped: bool,
    kind: str,
    message: str,
    run: StagesRun,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Whoever reads only the last line of the log must see what failed, and why."""
    for name in ("submit", "wait"):
        monkeypatch.setattr(run, name, lambda: None)
    monkeypatch.setattr(run, "states", lambda: dict(zip(("align", "train@1"), states, strict=True)))
    if is_stopped:
        run.stop.set()
    ended = run.run()
    assert (ended.type.value, ended.message) == (kind, message)


@pytest.mark.parametrize(
    ("remote", "sent"),
    [("none", []), ("gpu", ["train@1"]), ("all", ["align", "train@1"])],
)
def test_stages_with_work_are_sent_to_remote_workers(remote: Any, sent: list[str], run: StagesRun) -> None:
    """A .dvc file has no command, and a stage that is idle ends at once."""
    run.params = RunParams(remote=remote)
    stages = [
        stage("align"),
        SEEDS[0],
        replace(stage("text.dvc"), command=""),
        replace(SEEDS[1], is_idle=True),
    ]
    assert [one.name for one in stages if run.is_remote(one)] == sent


def test_a_stage_holds_a_slot_only_while_it_computes(run: StagesRun, monkeypatch: pytest.MonkeyPatch) -> None:
    """One with nothing to compute would wait for days of training. What others have pushed is pulled."""
    free = dict[str, tuple[int, tuple[str, ...]]]()

    def reproduce(_: GuardedRunner, name: str, *options: str) -> str:
        free[name] = len(run.leases.slots), options
        return "Executed"

    monkeypatch.setattr(GuardedRunner, "reproduce", reproduce)
    assert run_stages.update_stage(run, SEEDS[0]) == "Executed"
    run.params = RunParams(parallel=1, remote="gpu")
    run_stages.update_stage(run, stage("align"))
    run_stages.update_stage(run, replace(SEEDS[1], is_idle=True))
    assert free == {"train@1": (0, ()), "align": (0, ("--pull",)), "train@2": (1, ("--pull",))}
    assert len(run.leases.slots) == 1


@pytest.mark.parametrize(
    ("restored", "sent", "outcome"),
    [(["Cached"], 0, "Cached"), ([None, "Cached"], 1, "Cached"), ([None, None], 1, None)],
)
def test_a_stage_is_sent_only_if_its_outputs_are_in_no_cache(
    restored: list[Any], sent: int, outcome: str | None, run: StagesRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would take a worker from others; what it computes must arrive here, or the stage has failed."""
    calls = list[Stage]()
    answers = iter(restored)
    monkeypatch.setattr(GuardedRunner, "restore", lambda *_: next(answers))
    monkeypatch.setattr(run_stages.remote, "run_on_worker", lambda stage, _: calls.append(stage))
    run.params = RunParams(remote="gpu")
    if outcome:
        assert run_stages.update_stage(run, SEEDS[0]) == outcome
    else:
        with pytest.raises(StageFailed, match="not in this clone's DVC remote"):
            run_stages.update_stage(run, SEEDS[0])
    assert calls == SEEDS[:1] * sent
