"""How concurrent stages share the machine; nothing is run here."""

import os
from dataclasses import replace
from typing import Any

import pytest

from pipelines.flows import run_stages
from pipelines.flows.dvc_stage import Stop
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
